"""Tests of `keras_transformer.search.compilation` and of the options of searches."""

import types

import numpy as np

from keras_transformer.search.compilation import CompiledSearches, compiled_call
from keras_transformer.search.options import SearchOptions


def test_a_search_is_compiled_anew_for_other_weights_alone():
    searches, compiled = CompiledSearches(), []
    models = [types.SimpleNamespace(weights=[object()]) for _ in range(2)]
    # Identities have an order, so the weights change in both directions.
    for model in (*models, models[0]):
        for _ in range(2):
            searches.find(model, "key", lambda model=model: compiled.append(model))

    assert compiled == [*models, models[0]]


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
