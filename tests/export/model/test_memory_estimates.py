"""Tests of `export.model.memory_estimates`."""

from export.model.memory_estimates import ModelSizes, memory_bound, search_bytes
from export.model.search import SearchSettings
from keras_transformer import Architecture

SETTINGS = SearchSettings()


def bound(signatures=("serving_default",), **numbers):
    sizes = ModelSizes(Architecture(**numbers), 1000, 512, 4096)
    return memory_bound(sizes, SETTINGS, signatures)


def test_layers_of_the_decoder_keep_what_is_kept():
    whole = bound()

    assert bound(decoder_layers=6) == whole
    assert bound(decoder_layers=1) < bound(num_layers=1, decoder_layers=5)
    assert bound(num_layers=1, decoder_layers=6) == whole


def test_a_recurrence_keeps_one_vector_a_layer():
    sizes = [
        ModelSizes(Architecture(decoder_mixer=mixer), 1000, 512, 4096)
        for mixer in ("attention", "ssru")
    ]
    kept, state = (search_bytes(size, SETTINGS, 4, 100) for size in sizes)

    assert state < kept / 2


def test_what_closes_or_draws_needs_more():
    whole = bound()
    large = ModelSizes(Architecture(), 32_000, 512, 4096)
    drawn, found = (
        memory_bound(large, SETTINGS, names)
        for names in (("serving_default", "sample"), ("serving_default",))
    )

    assert whole < bound(("serving_default", "translate_constrained"))
    assert found < drawn
    ruled = SearchSettings(no_repeat_ngram=3)
    sizes = ModelSizes(Architecture(), 1000, 512, 4096)
    assert whole < memory_bound(sizes, ruled, ("serving_default",))


def test_pairs_have_maps_of_both_stacks():
    pairs = ("explain",)
    deep = {"num_layers": 200, "decoder_layers": 6}

    assert bound(pairs, **deep) > bound(pairs)
    assert bound(pairs, decoder_layers=200) > bound(pairs, **deep)
