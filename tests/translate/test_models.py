"""Tests of `translate.models` with signatures that are functions."""

import numpy as np
import pytest

from translate.models import Model


@pytest.mark.parametrize(
    ("was_cut", "expected"),
    [([False, True, False], ["a", "c"]), ([True, True, False], ["a", "b", "c"])],
)
def test_alternatives_are_as_complete_as_the_best(was_cut, expected):
    outputs = {
        "translation": np.array([[b"a", b"b", b"c", b"d"]], object),
        "valid": np.array([[True, True, True, False]]),
        "truncated": np.array([[*was_cut, False]]),
    }
    model = Model(None, lambda name, inputs: outputs)

    assert model.find_alternatives(["x"], 4) == [expected]
