"""Tests of `keras_transformer.search.beam_search`: it is `graph_beam_search`.

That one is compared with searches in plain Python; here the two are compared
with each other, on every backend.
"""

import functools
import importlib.util
import os
import pathlib
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import keras_transformer
from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.graph_search import graph_beam_search
from keras_transformer.search.options import SearchOptions
from tests.helpers.graph_searches import run_search
from tests.helpers.graph_searches import table_step
from tests.helpers.searches import END
from tests.helpers.searches import NEVER
from tests.helpers.searches import alphas
from tests.helpers.searches import check_equal
from tests.helpers.searches import random_tables
from tests.helpers.searches import search_by_hash
from tests.helpers.searches import seeds
from tests.helpers.searches import settings
from tests.helpers.searches import spreads
from tests.helpers.searches import thinning_table

ROOT = pathlib.Path(__file__).parents[3]
VOCABULARY_SIZE = 7


@functools.cache
def traced_search(beam_size, num_hypotheses, never=NEVER):
    """One graph for all tables, penalties, limits and prefixes."""

    @tf.function(
        input_signature=[
            tf.TensorSpec(
                [None, None, VOCABULARY_SIZE, VOCABULARY_SIZE], tf.float32
            ),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
        ],
        autograph=False,
    )
    def search(tables, length_penalty, max_lengths, prefix_ids):
        next_step, state = table_step(tables, beam_size)
        return beam_search(
            next_step,
            state,
            SearchOptions(beam_size, length_penalty, num_hypotheses, never),
            max_lengths,
            prefix_ids,
            max_length=tf.shape(tables)[1],
        )

    return search


def run_fixed(tables, beam_size, alpha, limits, prefixes=None, **kwargs):
    """Returns `Hypotheses` of arrays, as `run_search`."""
    prefix_ids = np.zeros((len(limits), 0), "int32")
    if prefixes is not None:
        prefix_ids = tf.ragged.constant(prefixes, tf.int32, 1).to_tensor()
    hypotheses = traced_search(beam_size, **kwargs)(
        tables,
        np.broadcast_to(np.float32(alpha), len(limits)),
        np.int32(limits),
        prefix_ids,
    )
    return tf.nest.map_structure(lambda x: x.numpy(), hypotheses)


@settings(max_examples=100)
@hypothesis.given(
    seed=seeds,
    spread=spreads,
    sizes=st.sampled_from([(1, 1), (2, 1), (3, None), (5, 3)]),
    sentences=st.lists(
        st.tuples(
            alphas,
            st.integers(1, 8),
            st.lists(st.sampled_from([2, 4, 5]), max_size=3),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_finds_what_the_search_for_graphs_finds(seed, spread, sizes, sentences):
    length_penalties, limits, prefixes = zip(*sentences, strict=True)
    prefixes = [
        prefix[: limit - 1]
        for prefix, limit in zip(prefixes, limits, strict=True)
    ]
    shape = (len(limits), 8, VOCABULARY_SIZE, VOCABULARY_SIZE)
    arguments = (
        random_tables(seed, spread, shape),
        sizes[0],
        length_penalties,
        limits,
        prefixes,
    )

    found = run_fixed(*arguments, num_hypotheses=sizes[1])

    expected, _ = run_search(*arguments, num_hypotheses=sizes[1])
    # Logits of 30 in float32 leave no better log-probability.
    check_equal(found, expected, atol=1e-5)


@pytest.mark.parametrize("never", [(), (0, 2, 3), (0, 3, 4, 99)])
def test_forbids_the_same_ids(never):
    shape = (1, 4, VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = np.maximum(random_tables(11, 1.0, shape), -9)
    kwargs = {"num_hypotheses": None, "never": never}

    found = run_fixed(tables, 5, 0.6, [4], [[2]], **kwargs)

    expected, _ = run_search(tables, 5, 0.6, [4], [[2]], **kwargs)
    check_equal(found, expected)


# A model on `keras.ops` whose next token depends on all before.


def sentences_of_all_kinds(count=24):
    """Returns tables, and a penalty, limit and prefix for each."""
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


def compile_search(search, **kwargs):
    """Returns `search_by_hash` as a compiled function of arrays."""

    @functools.partial(tf.function, autograph=False, **kwargs)
    def compiled(arrays, beam_size):
        return search_by_hash(search, arrays, beam_size)

    return compiled


@pytest.fixture(scope="module")
def expected(arrays):
    search = compile_search(graph_beam_search)
    return {
        beam_size: tf.nest.map_structure(np.asarray, search(arrays, beam_size))
        for beam_size in (1, 4)
    }


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_xla_compiles_it(arrays, expected, beam_size, jit_compile):
    fixed = functools.partial(beam_search, max_length=8)
    search = compile_search(fixed, jit_compile=jit_compile)

    found = search(arrays, beam_size)

    found = tf.nest.map_structure(np.asarray, found)
    check_equal(found, expected[beam_size])


def test_runs_without_a_graph(arrays, expected):
    found = search_by_hash(beam_search, arrays, 4)

    found = tf.nest.map_structure(np.asarray, found)
    check_equal(found, expected[4])


# What a user without TensorFlow would do, for whom its import fails.
SCRIPT = """
import functools
import sys
sys.modules["tensorflow"] = None

import keras
import numpy as np
from keras_transformer import beam_search
from tests.helpers.searches import search_by_hash

folder = sys.argv[1]
arrays = dict(np.load(folder + "/arrays.npz"))
search = functools.partial(
    search_by_hash, functools.partial(beam_search, max_length=8)
)
if keras.backend.backend() == "jax":
    import jax
    search = jax.jit(search, static_argnames="beam_size")
results = {"backend": keras.backend.backend()}
for beam_size in (1, 4):
    for name, value in search(arrays, beam_size=beam_size)._asdict().items():
        results[f"{name}_{beam_size}"] = keras.ops.convert_to_numpy(value)
np.savez(folder + "/found.npz", **results)
"""


@pytest.mark.parametrize(
    "backend", [pytest.param("jax", marks=pytest.mark.slow), "torch"]
)
def test_finds_the_same_on_other_backends(backend, arrays, expected, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    np.savez(tmp_path / "arrays.npz", **arrays)

    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "KERAS_BACKEND": backend},
        cwd=ROOT,
        check=True,
    )

    found = np.load(tmp_path / "found.npz")
    assert found["backend"] == backend
    for beam_size, hypotheses in expected.items():
        fields = [found[f"{name}_{beam_size}"] for name in hypotheses._fields]
        check_equal(type(hypotheses)(*fields), hypotheses)


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_of_equal_hypotheses_the_earlier_is_kept(num_hypotheses):
    """All tokens are equally likely, and so all of one length."""
    tables = np.zeros((1, 3, VOCABULARY_SIZE, VOCABULARY_SIZE), "float32")

    found = run_fixed(tables, 2, 0, [3], num_hypotheses=num_hypotheses)

    expected = [[END, 0, 0], [2, END, 0]][:num_hypotheses]
    np.testing.assert_array_equal(found.ids[0], expected)


def test_what_ends_takes_no_place_in_the_beam():
    table = thinning_table()

    def next_step(ids, index, state):
        return tf.gather(tf.constant(table)[index], ids), state

    found = beam_search(next_step, (), SearchOptions(2, 0.6), np.array([10]))

    np.testing.assert_allclose(found.scores, [[-0.834, -0.916]], atol=5e-4)
    assert found.ids.shape == (1, 2, 10)


def test_special_ids_are_arguments():
    """The same model with its ids in another order."""
    order = np.array([4, 6, 1, 5, 0, 2, 3], "int32")
    shape = (3, 6, VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = random_tables(9, 1.0, shape)
    renamed = np.empty_like(tables)
    renamed[:, :, order[:, None], order] = tables
    options = SearchOptions(
        beam_size=3, begin_id=order[3], end_id=order[1], padding_id=order[0]
    )
    limits = np.array([6, 3, 5], "int32")
    expected, _ = run_search(tables, 3, 0.6, limits)
    expected = expected._replace(ids=order[expected.ids])

    for search in (beam_search, graph_beam_search):
        found = search(*table_step(tf.constant(renamed), 3), options, limits)

        found = tf.nest.map_structure(np.asarray, found)
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


def test_no_limit_is_above_the_length():
    shape = (2, 4, VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = random_tables(4, 1.0, shape)
    tables[..., END] = -9  # So the search goes on to its limit.

    found = run_fixed(tables, 3, 0.6, [9, 2], num_hypotheses=None)

    expected, _ = run_search(tables, 3, 0.6, [4, 2])
    check_equal(found, expected)


def test_a_batch_of_none_gives_none():
    tables = np.zeros((0, 3, VOCABULARY_SIZE, VOCABULARY_SIZE), "float32")

    found = run_fixed(tables, 3, 0.6, [], num_hypotheses=2)

    assert [x.shape for x in found] == [(0, 2, 3), (0, 2), (0, 2), (0, 2)]


def test_the_largest_limit_is_the_length_where_it_is_known():
    tables = np.zeros((0, 3, VOCABULARY_SIZE, VOCABULARY_SIZE), "float32")
    next_step, state = table_step(tf.constant(tables), 2)

    found = beam_search(
        next_step, state, SearchOptions(2), np.zeros([0], "int32")
    )

    assert found.ids.shape == (0, 2, 1)


def test_the_package_offers_it():
    assert keras_transformer.beam_search is beam_search
    assert keras_transformer.SearchOptions is SearchOptions
