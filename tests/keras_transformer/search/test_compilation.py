"""Tests of `keras_transformer.search.compilation` and of the options of searches."""

import types

import numpy as np

from keras_transformer.search.compilation import CompiledSearches, compiled_call
from keras_transformer.search.options import SearchOptions


def test_a_penalty_of_the_batch_may_follow_one_of_each_sentence():
    model = types.SimpleNamespace(weights=[], compiled_searches=CompiledSearches())

    def search(model, options, max_length, max_lengths):
        return options.length_penalty

    for penalty in (0.5, np.array([0.5, 1.0]), 0.25):
        found = compiled_call(
            model,
            search,
            SearchOptions(length_penalty=penalty),
            {"max_lengths": np.array([3, 3])},
            max_length=None,
        )
        np.testing.assert_array_equal(found, penalty)
