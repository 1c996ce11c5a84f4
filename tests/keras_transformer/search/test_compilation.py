"""Tests of `keras_transformer.search.compilation`."""

import types

from keras_transformer.search.compilation import CompiledSearches


def test_a_search_is_compiled_anew_for_other_weights_alone():
    searches, compiled = CompiledSearches(), []
    models = [types.SimpleNamespace(weights=[object()]) for _ in range(2)]
    # Identities have an order, so the weights change in both directions.
    for model in (*models, models[0]):
        for _ in range(2):
            searches.find(
                model, "key", lambda model=model: compiled.append(model)
            )

    assert compiled == [*models, models[0]]
