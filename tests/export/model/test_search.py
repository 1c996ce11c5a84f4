"""Tests of sampled search and of options of rows, run as the server runs them."""

import numpy as np
import pytest
import tensorflow as tf

from litert_translator.translator import decode
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.oracles.numpy_oracles import draw, encode, target_log_probabilities
from tests.helpers.oracles.reference_searches import penalty
from tests.helpers.signature_requests import (
    EXTRA,
    differences,
    options_inputs,
    sample_inputs,
    to_rows,
)

TEXTS = [s.encode() for s in SENTENCES]
LONG = b" ".join(TEXTS * 9)


CUTS = [
    *((1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.8), (1.0, 40, 0.9)),
    (1.0, 1, 1.0),  # The best.
]


def test_draws_are_those_of_numpy(servable, model, tokenizer):
    """From the logits of the whole model, a token at a time."""
    texts, cuts = (TEXTS * 2)[:10], CUTS * 2
    row_seeds = 1000 + np.arange(10)
    source = encode(tokenizer, texts)
    limits = (source > 0).sum(axis=1) + EXTRA
    target = np.zeros([10, limits.max() + 1], np.int32)
    target[:, 0] = 3
    # One shape for all steps: the tokens after a position are ignored.
    logits_of = tf.function(
        lambda ids: model({"source_ids": source, "target_ids": ids})
    )
    allowed = [i for i in range(330) if i not in (0, 3)]
    for step in range(target.shape[1] - 1):
        logits = np.array(logits_of(target)[:, step], np.float64)
        for place, row in enumerate(logits):
            target[place, step + 1], gap = draw(
                row, allowed, int(row_seeds[place]), step, *cuts[place]
            )
            assert gap > 1e-6 or 1 in target[place, : step + 1]

    columns = zip(*cuts, strict=True)
    outputs = servable.predict("sample", sample_inputs(texts, row_seeds, *columns))

    assert (outputs["error"] == b"").all()
    for place, row in enumerate(to_rows(outputs)):
        ids = target[place, 1 : limits[place] + 1].tolist()
        cut = 1 not in ids
        ids = ids[:-1] if cut else ids[: ids.index(1)]
        total = target_log_probabilities(
            model, source[place : place + 1], np.array([[*ids, 1]])
        ).sum()
        assert row["translation"].decode() == decode(tokenizer, ids)
        assert row["truncated"] == cut
        assert row["score"] == pytest.approx(total / penalty(len(ids) + 1), rel=1e-5)


ERRORS = {
    "translate_options": (
        options_inputs,
        [
            ({"alpha": np.nan}, b"length_penalty must be between -10 and 10."),
            ({"alpha": 1e30}, b"Received: "),
            ({"alpha": -np.inf, "extra": -1}, b"Received: -inf"),
            ({"extra": -1}, b"between 0 and 1000. Received: -1"),
            ({"extra": 1001}, b"Received: 1001"),
            ({"extra": 2**31 - 1, "prefixes": [b"\0\xff"]}, b"Received: 2147483647"),
            # Cut, but of what is not translated that is not told.
            ({"alpha": np.nan, "prefixes": [LONG]}, b"Received: nan"),
        ],
    ),
    "sample": (
        lambda texts, **given: sample_inputs(texts, 1, **given),
        [
            ({"temperature": 0}, b"temperature must be between 0.01 and 100."),
            ({"temperature": np.nan}, b"Received: nan"),
            ({"temperature": 101}, b"Received: 101"),
            ({"top_k": -1}, b"between 0 and 2147483647. Received: -1"),
            ({"top_p": 0}, b"top_p must be above 0 and at most 1. Received: "),
            ({"top_p": 1.01}, b"Received: 1.01"),
            ({"top_p": np.nan}, b"Received: nan"),
        ],
    ),
}


@pytest.mark.parametrize("signature", ERRORS)
def test_a_bad_row_has_its_error_and_the_others_none(servable, signature):
    make, cases = ERRORS[signature]
    good = servable.predict(signature, make(TEXTS[:1]))
    parts = [make(TEXTS[:1], **given) for given, _ in cases]
    parts.append(make(TEXTS[:1]))
    inputs = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    *bad, last = to_rows(servable.predict(signature, inputs))

    assert not differences(last, to_rows(good)[0])
    for row, (_, message) in zip(bad, cases, strict=True):
        assert message in row["error"]
        assert row["translation"] == b""
        assert row["score"] == 0
        assert not row["truncated"]
