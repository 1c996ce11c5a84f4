"""Tests of `export.model.request_splitting`, and of requests that need many."""

import itertools

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies

from export.bundle.run_loading import load_run
from export.model import forced_decoding
from export.model.request_splitting import in_chunks
from export.model.search import SearchSettings
from export.model.signature_inputs import INPUTS
from tests.helpers.example_sentences import NASTY, SENTENCES
from tests.helpers.signature_requests import (
    REQUESTS,
    assert_same,
    differences,
    nbest_inputs,
    options_inputs,
    to_rows,
)

TEXTS = [s.encode() for s in SENTENCES] + NASTY
SETTINGS = {"beam_size": 3, "max_extra_length": 8}  # Of the fixture's export.
FEW = 4 * 3 * 64  # Four short rows.


@pytest.fixture(scope="module")
def in_parts(run_dir):
    """The signatures of the fixture's model, a few rows at a time."""
    before = forced_decoding.MAX_NUMBERS
    forced_decoding.MAX_NUMBERS = 40_000
    settings = SearchSettings(**SETTINGS, budget=FEW)
    yield load_run(run_dir, settings, signatures=INPUTS).signatures
    forced_decoding.MAX_NUMBERS = before


def ask(signatures, name, inputs):
    outputs = signatures[name](
        **{key: tf.constant(value) for key, value in inputs.items()}
    )
    return {key: value.numpy() for key, value in outputs.items()}


@hypothesis.settings(max_examples=30, derandomize=True, deadline=None)
@hypothesis.given(
    costs=strategies.lists(strategies.integers(1, 40), max_size=12),
    budget=strategies.integers(1, 100),
)
def test_no_chunk_costs_more_than_the_budget(costs, budget):
    chunks = []

    def answer(rows):
        chunks.append(rows.numpy().tolist())
        return tf.gather(tf.constant(costs, tf.int32), rows)

    found = in_chunks(
        tf.constant(costs, tf.int32), budget, answer, tf.fill([len(costs)], -1)
    )

    assert found.numpy().tolist() == costs
    assert sorted(itertools.chain(*chunks)) == [*range(len(costs))]
    for chunk in chunks:
        most = max(costs[row] for row in chunk)
        assert len(chunk) == 1 or len(chunk) * most <= budget
    # As few as these costs, taken in order, can have.
    for chunk, following in itertools.pairwise(chunks):
        assert (len(chunk) + 1) * costs[chunk[0]] > budget
        assert costs[following[0]] <= costs[chunk[-1]]


@pytest.mark.parametrize("signature", ["serving_default", "translate_nbest", "score"])
def test_parts_answer_as_the_whole(signature, in_parts, servable):
    inputs = REQUESTS[signature](TEXTS)

    found = ask(in_parts, signature, inputs)

    expected = servable.predict(signature, inputs)
    for row, whole in zip(to_rows(found), to_rows(expected), strict=True):
        assert not differences(row, whole)
    assert {k: v.shape for k, v in found.items()} == {
        k: v.shape for k, v in expected.items()
    }


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("align", "weights and logits of all rows must be at most"),
        ("explain", "weights and logits of all rows must be at most"),
        ("explain_beam", "times beam_size times positions must be at most"),
    ],
)
def test_what_explains_many_is_refused(signature, message, in_parts):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask(in_parts, signature, REQUESTS[signature](TEXTS))

    ask(in_parts, signature, REQUESTS[signature](TEXTS[-1:]))  # One: always.


def test_beams_beyond_the_budget_are_refused(in_parts):
    inputs = nbest_inputs([b"Two cats sleep.", b"a"], FEW // 64 + 1)

    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=rf"must be at most {FEW}\. Received:.*\[{FEW // 64 + 1}\] \[64\]",
    ):
        ask(in_parts, "translate_nbest", inputs)


def test_a_request_gets_no_more_length_than_the_export_has(servable):
    texts = TEXTS[:3]

    for name, make in (
        ("translate_nbest", nbest_inputs),
        ("translate_options", options_inputs),
    ):
        found = servable.predict(name, make(texts, extra=1000))
        expected = servable.predict(name, make(texts, extra=8))
        assert_same(expected, found, atol=0)
        assert found["truncated"].any()
