"""Compares `beam_search`, on every backend, with the graph search."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.options import SearchOptions
from tests.helpers.oracles.graph_searches import (
    graph_beam_search,
    run_search,
    table_step,
)
from tests.helpers.oracles.reference_searches import (
    check_equal,
    random_tables,
    search_modes,
)
from tests.helpers.python_subprocess import on_other_backends, run_python

VOCABULARY_SIZE = 7
fixed_search = functools.partial(beam_search, max_length=8)
WAYS, EXPECTED = (search_modes(fixed_search), search_modes(graph_beam_search))


def as_arrays(hypotheses):
    return tf.nest.map_structure(np.asarray, hypotheses)


def sentences_of_all_kinds(count=24):
    rng = np.random.default_rng(3)
    limits = rng.integers(1, 9, count)
    prefix_ids = rng.choice([2, 4, 5], (count, 3))
    prefix_ids[np.arange(3) >= rng.integers(0, 4, count)[:, None]] = 0
    prefix_ids[np.arange(3) >= limits[:, None] - 1] = 0
    shape = (count, 8, VOCABULARY_SIZE, VOCABULARY_SIZE)
    return {
        "tables": random_tables(5, 1.5, shape),
        "length_penalty": np.resize([-0.7, 0, 0.6, 1.5], count).astype("f4"),
        "max_lengths": limits.astype("i4"),
        "prefix_ids": prefix_ids.astype("i4"),
    }


@pytest.fixture(scope="module")
def arrays():
    return sentences_of_all_kinds()


@pytest.mark.parametrize("way", ["greedy", "beams", "rules"])
def test_xla_compiles_it(arrays, way):
    compiled = tf.function(WAYS[way], autograph=False, jit_compile=True)

    check_equal(*map(as_arrays, (compiled(arrays), EXPECTED[way](arrays))))


# The program of a user without TensorFlow, whose import fails.
SCRIPT = """
import functools
import sys
sys.modules["tensorflow"] = None

import keras
import numpy as np
from keras_transformer import beam_search
from tests.helpers.oracles.reference_searches import search_modes

folder = sys.argv[1]
arrays = dict(np.load(folder + "/arrays.npz"))
ways = search_modes(functools.partial(beam_search, max_length=8))
if keras.backend.backend() == "jax":
    import jax
    ways = {way: jax.jit(search) for way, search in ways.items()}
results = {"backend": keras.backend.backend()}
for way, search in ways.items():
    for name, value in search(arrays)._asdict().items():
        results[f"{name}_{way}"] = keras.ops.convert_to_numpy(value)
np.savez(folder + "/found.npz", **results)
"""


@on_other_backends
def test_finds_the_same_on_other_backends(backend, arrays, tmp_path):
    np.savez(tmp_path / "arrays.npz", **arrays)

    run_python("-c", SCRIPT, tmp_path, backend=backend)

    found = np.load(tmp_path / "found.npz")
    assert found["backend"] == backend
    for way, search in EXPECTED.items():
        expected = as_arrays(search(arrays))
        fields = [found[f"{name}_{way}"] for name in expected._fields]
        check_equal(type(expected)(*fields), expected)


def test_special_ids_are_arguments():
    """The same model with its ids in another order."""
    order = np.array([4, 6, 1, 5, 0, 2, 3], "int32")
    shape = (3, 6, VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = random_tables(9, 1.0, shape)
    renamed = np.empty_like(tables)
    renamed[:, :, order[:, None], order] = tables
    options = SearchOptions(
        beam_size=3, bos_id=order[3], eos_id=order[1], padding_id=order[0]
    )
    limits = np.array([6, 3, 5], "int32")
    expected, _ = run_search(tables, 3, 0.6, limits)
    expected = expected._replace(ids=order[expected.ids])

    for search in (beam_search, graph_beam_search):
        found = search(*table_step(tf.constant(renamed), 3), options, limits)

        found = as_arrays(found)
        types = [str(x.dtype) for x in found]
        assert types == ["int32", "float32", "int32", "bool"]
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_nan_ends_the_search(num_hypotheses):
    """As of a model whose training went astray."""
    tables = np.full((2, 5, 7, 7), np.nan, "float32")
    limits = np.array([5, 4], "int32")
    options = SearchOptions(2, num_hypotheses=num_hypotheses)

    for search in (beam_search, graph_beam_search):
        found = search(*table_step(tf.constant(tables), 2), options, limits)

        assert found.lengths.shape == (2, num_hypotheses)
