"""Tests of `keras_transformer.search.options`."""

import dataclasses

import numpy as np

from keras_transformer.search.options import SearchOptions, length_penalty_of


def test_what_is_not_given_follows_what_is():
    options = dataclasses.replace(SearchOptions(), beam_size=3, bos_id=7)

    assert options.num_returned == 3
    assert options.never_chosen == (0, 7)
    assert SearchOptions(3, 0.6, 2, ()).num_returned == 2
    assert SearchOptions(3, 0.6, 2, ()).never_chosen == ()


def test_the_length_penalty_is_that_of_wu_et_al():
    found = length_penalty_of(np.array([1, 7, 50]), 0.6)

    assert found.dtype == "float32"
    expected = ((5 + np.array([1, 7, 50])) / 6) ** 0.6
    np.testing.assert_allclose(found, expected, rtol=1e-6)
