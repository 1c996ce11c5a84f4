"""No text changes the answer to another, and no text breaks a signature.

    STRINGS=10000 python -m pytest tests/export/model/test_invariance.py

sends that many texts through every signature; the suite sends fewer.
"""

import os

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from tests.helpers.example_sentences import NASTY, WORDS, make_string
from tests.helpers.signature_requests import (
    REQUESTS,
    differences,
    invalid_outputs,
    to_rows,
)

NUM_STRINGS = int(os.environ.get("STRINGS", 128))
BATCH_SIZE = 64

TEXTS = strategies.one_of(
    strategies.lists(strategies.sampled_from(WORDS), max_size=12).map(b" ".join),
    strategies.text(max_size=30).map(str.encode),
    strategies.binary(max_size=30),
    strategies.sampled_from(NASTY),
)


@pytest.mark.parametrize("signature", REQUESTS)
def test_neither_batch_nor_order_changes_an_answer(signature, servable):
    known = {}

    def answer(texts):
        inputs = REQUESTS[signature](texts)
        return to_rows(servable.predict(signature, inputs))

    @hypothesis.settings(max_examples=6, derandomize=True, deadline=None, database=None)
    @hypothesis.given(
        texts=strategies.lists(TEXTS, min_size=2, max_size=7),
        random=strategies.randoms(use_true_random=False),
    )
    def check(texts, random):
        for text in texts:
            if text not in known:
                (known[text],) = answer([text])
        random.shuffle(texts)
        for found, text in zip(answer(texts), texts, strict=True):
            assert not differences(found, known[text]), text

    check()
    assert len(known) > 10


@pytest.mark.parametrize("signature", REQUESTS)
def test_no_string_breaks_a_signature(signature, servable):
    random = np.random.default_rng(2017)
    texts = [make_string(random) for _ in range(NUM_STRINGS)]

    for start in range(0, NUM_STRINGS, BATCH_SIZE):
        batch = texts[start : start + BATCH_SIZE]
        outputs = servable.predict(signature, REQUESTS[signature](batch))
        assert not invalid_outputs(outputs)
        for value in outputs.values():
            assert len(value) == len(batch)
