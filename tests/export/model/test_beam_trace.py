"""Tests of `export.model.beam_trace`."""

import functools

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from export.model.beam_trace import trace_beam_search
from keras_transformer.search.graph_search import StepModel
from keras_transformer.search.options import SearchOptions
from tests.helpers.graph_searches import run_search
from tests.helpers.graph_searches import table_step
from tests.helpers.searches import BEGIN
from tests.helpers.searches import END
from tests.helpers.searches import NEVER
from tests.helpers.searches import alphas
from tests.helpers.searches import check_equal
from tests.helpers.searches import log_softmax
from tests.helpers.searches import penalty
from tests.helpers.searches import random_tables
from tests.helpers.searches import seeds
from tests.helpers.searches import sentence
from tests.helpers.searches import settings
from tests.helpers.searches import spreads


@functools.cache
def compiled_trace():
    """One graph for all batches, as that of `run_search`."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, None, None], tf.float32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def search(tables, beam_size, length_penalty, max_lengths):
        next_step, state = table_step(tables, beam_size)
        options = SearchOptions(beam_size, length_penalty)
        model = StepModel(next_step, state, (), beam_size)
        return trace_beam_search(model, options, max_lengths)

    return search


def run_trace(tables, beam_size, alpha, limits):
    found = compiled_trace()(
        tables, np.int32(beam_size), np.float32(alpha), np.int32(limits)
    )
    return tf.nest.map_structure(lambda x: x.numpy(), found)


def candidates_of(trace, step):
    """Returns `(parent, id, log-probability, kept)` of those that exist."""
    exists = trace.log_probabilities[step] > -np.inf
    columns = [column[step][exists].tolist() for column in trace]
    return list(zip(*columns, strict=True))


def finished_of(trace, alpha):
    """Reads the finished hypotheses in a trace, and nothing but it.

    Returns:
        `(score, ids)` of each, best first, the earlier first of equals.
    """
    paths, finished = {0: ()}, []
    for step in range(len(trace.ids)):
        grown = {}
        for place, candidate in enumerate(candidates_of(trace, step)):
            parent, token, total, kept = candidate
            if kept:
                grown[place] = (*paths[parent], token)
            if kept and token == END:
                score = total / penalty(step + 1, alpha)
                finished.append((score, grown.pop(place)))
        paths = grown
    return sorted(finished, key=lambda found: -found[0])


def check_steps(trace, table, beam_size, limit):
    """Compares each step with all continuations, in plain Python."""
    log_probabilities = log_softmax(table)
    live = {0: (BEGIN, 0.0)}
    for step in range(len(trace.ids)):
        candidates = candidates_of(trace, step)
        if not candidates:
            return
        offers = {}
        for place, (last, total) in live.items():
            found = total + log_probabilities[step, last]
            found[list(NEVER)] = -np.inf
            if step + 1 == limit:
                found[np.arange(len(found)) != END] = -np.inf
            for token in np.flatnonzero(found > -np.inf):
                offers[place, int(token)] = found[token]
        expected = sorted(offers.values(), reverse=True)[: 2 * beam_size]
        totals = [total for _, _, total, _ in candidates]
        np.testing.assert_allclose(totals, expected, rtol=1e-5, atol=1e-4)
        named = [(parent, token) for parent, token, _, _ in candidates]
        assert len(set(named)) == len(named)
        np.testing.assert_allclose(
            totals, [offers[name] for name in named], rtol=1e-5, atol=1e-4
        )
        # Greedy search looks at the first alone.
        seen = named[:1] if beam_size == 1 else named
        going_on = [name for name in seen if name[1] != END][:beam_size]
        ended = [name for name in seen if name[1] == END]
        kept = [name for name, c in zip(named, candidates, strict=True) if c[3]]
        assert set(kept) == {*going_on, *ended}
        live = {named.index(name): (name[1], offers[name]) for name in going_on}


@settings(max_examples=20)
@hypothesis.given(
    seed=seeds,
    spread=spreads,
    alpha=alphas,
    beam_size=st.integers(1, 5),
    limits=st.lists(st.integers(1, 6), min_size=1, max_size=5),
)
def test_a_trace_is_the_search(seed, spread, alpha, beam_size, limits):
    tables = random_tables(seed, spread, (len(limits), 6, 7, 7))

    found, trace = run_trace(tables, beam_size, alpha, limits)

    expected, _ = run_search(tables, beam_size, alpha, limits)
    check_equal(found, expected)
    for place, limit in enumerate(limits):
        place_trace = sentence(trace, place)
        hypotheses = sentence(expected, place)
        check_steps(place_trace, tables[place], beam_size, limit)
        finished = finished_of(place_trace, alpha)[:beam_size]
        filled = hypotheses.lengths > 0
        assert filled.sum() == len(finished)
        np.testing.assert_allclose(
            [score for score, _ in finished],
            hypotheses.scores[filled],
            rtol=1e-5,
        )
        read = [
            tuple(ids[:length].tolist())
            for ids, length in zip(
                hypotheses.ids, hypotheses.lengths, strict=True
            )
            if length
        ]
        assert [ids for _, ids in finished] == read


def test_what_is_missing_says_so():
    """A step of few candidates prunes nothing, and after the last is none."""
    table = np.full((1, 3, 5, 5), -10, "float32")
    table[..., END] = 0
    table[..., [*NEVER, 4]] = -np.inf

    _, trace = run_trace(table, 2, 0.6, [3])

    assert trace.ids[0, 0].tolist() == [END, 2, 0, 0]
    assert trace.parents[0, 0].tolist() == [0, 0, -1, -1]
    assert trace.ids[0, 1].tolist() == [END, 2, 0, 0]
    assert trace.parents[0, 1].tolist() == [1, 1, -1, -1]
    assert trace.kept[0, :2].tolist() == [[True, True, False, False]] * 2
    assert np.isneginf(trace.log_probabilities[0, :2, 2:]).all()
    assert (trace.ids[0, 2] == 0).all()
    assert (trace.parents[0, 2] == -1).all()
    assert not trace.kept[0, 2].any()
