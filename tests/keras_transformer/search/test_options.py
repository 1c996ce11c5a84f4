"""Tests of `keras_transformer.search.options`."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.options import length_penalty_of


@pytest.mark.parametrize("beam_size", [0, -1])
def test_refuses_a_beam_size_below_one(beam_size):
    with pytest.raises(ValueError, match=f"`beam_size`.*=({beam_size})$"):
        SearchOptions(beam_size)


@pytest.mark.parametrize("num_hypotheses", [-1, 0, 3])
def test_refuses_more_hypotheses_than_beams_or_none(num_hypotheses):
    with pytest.raises(
        ValueError, match=f"`num_hypotheses`.*={num_hypotheses}, beam_size=2$"
    ):
        SearchOptions(2, num_hypotheses=num_hypotheses)


def test_refuses_no_hypotheses_of_a_beam_size_that_is_a_tensor():
    with pytest.raises(ValueError, match=r"`num_hypotheses`.*=0"):
        SearchOptions(tf.constant(2), num_hypotheses=0)


def test_what_is_not_given_follows_what_is():
    options = dataclasses.replace(SearchOptions(), beam_size=3, begin_id=7)

    assert options.num_returned == 3
    assert options.never_chosen == (0, 7)
    assert SearchOptions(3, 0.6, 2, ()).num_returned == 2
    assert SearchOptions(3, 0.6, 2, ()).never_chosen == ()


def test_the_length_penalty_is_that_of_wu_et_al():
    found = length_penalty_of(np.array([1, 7, 50]), 0.6)

    assert found.dtype == "float32"
    expected = ((5 + np.array([1, 7, 50])) / 6) ** 0.6
    np.testing.assert_allclose(found, expected, rtol=1e-6)
