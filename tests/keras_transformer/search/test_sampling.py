"""Draws are drawn again by NumPy, with a hash of its own, and counted."""

import functools

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from scipy import stats

from keras_transformer.search import sampling as sampling_module
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.sampling import (
    Sampling,
    mask_unlikely,
    sample,
    sample_tokens,
    sampling_tensors,
    uniform_numbers,
    with_one_beam,
)
from keras_transformer.search.tensorflow.search_loop import run_search_loop
from tests.helpers.oracles.graph_searches import StepModel, table_step
from tests.helpers.oracles.numpy_oracles import draw, weights_of
from tests.helpers.oracles.reference_searches import (
    BEGIN,
    END,
    allowed_tokens,
    check_equal,
    log_softmax,
    penalty,
    random_tables,
    seeds,
    settings,
    spreads,
)

LENGTH, VOCABULARY_SIZE = 7, 8
INTS, FLOATS = (tf.TensorSpec([None], dtype) for dtype in ("int32", "float32"))


def plain_sample(table, limit, alpha, prefix, seed, rules, *cuts):
    """Draws by NumPy. Returns ids, score, `truncated`, and the least gap."""
    log_probabilities, total, gap = log_softmax(table), 0.0, np.inf
    ids = ()
    while END not in ids:
        index = len(ids)
        row = log_probabilities[index, ids[-1] if ids else BEGIN]
        # At the limit EOS is forced; the sample there has no effect.
        allowed = allowed_tokens(ids, row, max(limit, index + 2), **rules)
        if not np.isfinite(row[allowed]).any():
            return None
        drawn, near = draw(row, allowed, seed, index, *cuts)
        gap = min(gap, near)
        forced = [*prefix[index : index + 1], *[END] * (index + 1 == limit)]
        token = forced[0] if forced else drawn
        total += row[token]
        ids = (*ids, token)
        if total == -np.inf:
            return None
    truncated = len(ids) == limit and drawn != END
    return ids, total / penalty(len(ids), alpha), truncated, gap


@functools.cache
def traced_sample(is_fast):
    """One graph for all tables, limits, prefixes and cuts."""
    shape = [None, LENGTH, VOCABULARY_SIZE, VOCABULARY_SIZE]

    @tf.function(
        input_signature=[
            tf.TensorSpec(shape),
            *(INTS, FLOATS, tf.TensorSpec([None, None], tf.int32)),
            *(INTS, FLOATS, INTS, FLOATS, INTS, INTS),
        ],
        autograph=False,
    )
    def run(tables, limits, alphas, prefix_ids, *more):
        *cuts, sizes, least = more
        options = SearchOptions(4, alphas, no_repeat_ngram=sizes, min_length=least)
        step, state = table_step(tables, 1)
        sampling = Sampling(*cuts)
        if is_fast:
            model = StepModel(step, state, (), 1)
            draws = sampling_tensors(sampling, limits)
            return run_search_loop(
                model, with_one_beam(options), limits, prefix_ids, draws
            )
        return sample(step, state, options, limits, sampling, prefix_ids, (), LENGTH)

    return run


SENTENCES = st.lists(
    st.tuples(
        st.integers(1, LENGTH),
        st.floats(-1.0, 2.0, width=32),
        st.lists(st.sampled_from([2, 4, 5]), max_size=3),
        st.integers(-(2**31), 2**31 - 1),
        st.sampled_from([0.25, 1.0, 2.5]),
        st.sampled_from([0, 1, 2, 5, 99]),
        st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        st.integers(0, 3),
        st.integers(0, 8),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=50)
@hypothesis.given(seed=seeds, spread=spreads, sentences=SENTENCES)
def test_both_draw_what_numpy_draws(seed, spread, sentences):
    shape = (len(sentences), LENGTH, VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = random_tables(seed, spread, shape)
    limits, alphas, prefixes, *more = zip(*sentences, strict=True)
    prefixes = [p[: n - 1] for p, n in zip(prefixes, limits, strict=True)]
    types = ("int32", "float32", "int32", "float32", "int32", "int32")
    arguments = (
        tables,
        np.int32(limits),
        np.float32(alphas),
        tf.ragged.constant(prefixes, tf.int32, 1).to_tensor(),
        *map(np.array, more, types),
    )

    answers = [
        tf.nest.map_structure(np.asarray, traced_sample(is_fast)(*arguments))
        for is_fast in (False, True)
    ]

    check_equal(*answers, atol=1e-5)
    for place, sentence in enumerate(sentences):
        limit, alpha, _, row_seed, *cuts, size, least = sentence
        rules = {"size": size, "least": min(least, limit - 1)}
        expected = plain_sample(
            tables[place], limit, alpha, prefixes[place], row_seed, rules, *cuts
        )
        found = [x[place, 0] for x in answers[0]]
        if expected is None:
            assert found[1] == -np.inf
            continue
        ids, score, truncated, gap = expected
        if gap > 1e-5:
            assert tuple(found[0][: len(ids)]) == ids
            assert not found[0][len(ids) :].any()
            assert found[1] == pytest.approx(score, rel=1e-5, abs=1e-5)
            assert found[2] == len(ids)
            assert found[3] == truncated


@settings(max_examples=20)
@hypothesis.given(
    seed=seeds,
    size=st.sampled_from([5, 127, 128, 129, 300]),
    spread=spreads,
    cuts=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 5, 127, 128, 129, 200, 299, 2**31 - 1]),
            st.sampled_from([0.01, 0.3, 0.9, 0.999, 1.0]),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_the_likeliest_are_those_of_a_sort(seed, size, spread, cuts):
    """Whether few are enough, or one row needs all of them sorted."""
    rng = np.random.default_rng(seed)
    logits = (spread * rng.normal(size=(len(cuts), size))).astype("float32")
    logits[:, 0] = -np.inf
    top_k, top_p = zip(*cuts, strict=True)
    sampling = Sampling(
        tf.zeros(len(cuts), tf.int32),
        top_k=tf.constant(top_k),
        top_p=tf.constant(top_p),
    )

    found = mask_unlikely(
        tf.constant(logits), sampling_tensors(sampling, sampling.seeds)
    )

    for row, kept, cut in zip(logits, found.numpy(), cuts, strict=True):
        weights, gap = weights_of(row, np.arange(1, size), 1.0, *cut)
        if gap > 1e-6:
            np.testing.assert_array_equal(kept > -np.inf, weights > 0)
            np.testing.assert_array_equal(kept[weights > 0], row[weights > 0])


def count_draws(logits, sampling_of, count=20_000):
    """Returns how often each token is drawn by seeds that follow each other."""
    row_seeds = np.arange(count, dtype="int32")
    sampling = sampling_of(row_seeds)
    draws = sampling_tensors(sampling, row_seeds)
    rows = tf.repeat(tf.constant(logits[None], tf.float32), count, axis=0)
    _, ids = sample_tokens(rows, 0, draws)
    return np.bincount(np.asarray(ids)[:, 0], minlength=len(logits))


CUTS = [(1.0, 0, 1.0), (0.5, 0, 1.0), (1.0, 5, 1.0), (2.0, 6, 0.7)]


@pytest.mark.parametrize(
    ("size", "cuts"),
    [*((8, cuts) for cuts in CUTS), *zip((255, 256, 257, 700), CUTS, strict=True)]
    + [(700, CUTS[0])],
)
def test_draws_have_their_probabilities(size, cuts):
    logits = 1.5 * np.random.default_rng(size).normal(size=size)
    logits[[0, size // 2]] = -np.inf
    weights, _ = weights_of(logits, np.flatnonzero(logits > -np.inf), *cuts)

    counts = count_draws(logits, lambda s: Sampling(s, *cuts))

    assert not counts[weights == 0].any()
    # Those that are rare are counted together.
    expected = counts.sum() * weights
    common = expected >= 10
    found = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    filled = expected > 0
    assert stats.chisquare(found[filled], expected[filled]).pvalue > 1e-3


def test_chances_are_even_and_know_nothing_of_each_other():
    row_seeds = tf.range(-20_000, 20_000)
    chances = np.stack(
        [x for index in (0, 1, 2) for x in uniform_numbers(row_seeds, index)]
    )

    assert chances.min() >= 0
    assert chances.max() < 1
    for one, other in [(0, 1), (0, 2), (1, 2), (1, 3), (3, 5)]:
        table, *_ = np.histogram2d(chances[one], chances[other], 16, [[0, 1], [0, 1]])
        assert stats.chisquare(table.ravel()).pvalue > 1e-3
    # Nor do neighbors among the seeds.
    table, *_ = np.histogram2d(chances[1, ::2], chances[1, 1::2], 16, [[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > 1e-3


def test_each_rare_token_has_its_chance(monkeypatch):
    """One float32 sum over all of them would pass most of them over."""
    logits = np.full((256, 50_000), -18.0, "float32")
    logits[:, 1] = 0.0
    seconds = (np.arange(256, dtype="float32") + 0.5) / 256
    chances = np.full(256, 0.99999, "float32"), seconds
    monkeypatch.setattr(
        sampling_module, "uniform_numbers", lambda *_: map(tf.constant, chances)
    )

    _, ids = sample_tokens(tf.constant(logits), 0, {"seeds": None})

    assert ids[0, 0] > 49_000
    np.testing.assert_array_equal(np.diff(ids[:, 0]), 1)


def test_tokens_as_likely_as_the_last_are_kept():
    logits = np.array([-np.inf, 0.0, 1.0, -np.inf, 0.0, -1.0])

    for cuts in ({"top_k": 2}, {"top_p": 0.6}):
        counts = count_draws(
            logits, lambda s, cuts=cuts: Sampling(s, **cuts), count=500
        )

        np.testing.assert_array_equal(counts > 0, [0, 1, 1, 0, 1, 0])
