import functools
import math

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.tensorflow.candidates import blockwise_top_k
from tests.helpers.oracles.graph_searches import run_search
from tests.helpers.oracles.reference_searches import (
    BEGIN,
    END,
    FORBIDDEN_IDS,
    alphas,
    check_fillers,
    check_sentence,
    exhaustive_search,
    plain_beam_search,
    random_tables,
    seeds,
    sentence,
    settings,
    spreads,
)

PORTABLE = {"search": functools.partial(beam_search, max_length=4)}
PORTABLE["known_sizes"] = (40, 6)  # Of the beam and of the vocabulary.


@pytest.mark.parametrize("search", [{}, PORTABLE], ids=["graph", "portable"])
@settings(max_examples=80)
@hypothesis.given(
    seed=seeds,
    spread=spreads,
    sentences=st.lists(
        st.tuples(
            alphas, st.integers(1, 4), st.lists(st.sampled_from([2, 4, 5]), max_size=3)
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_a_beam_that_holds_all_sequences_finds_all(search, seed, spread, sentences):
    """Each sentence with its own penalty, limit and prefix."""
    # Three tokens may continue: 1 + 3 + 9 + 27 = 40 sequences within 4 tokens.
    tables = random_tables(seed, spread, (len(sentences), 4, 6, 6))
    own_alphas, limits, prefixes = zip(*sentences, strict=True)
    prefixes = [p[: n - 1] for p, n in zip(prefixes, limits, strict=True)]

    found, _ = run_search(tables, 40, own_alphas, limits, prefixes, **search)

    assert found.ids.shape[:2] == (len(limits), 40)
    assert not found.ids[:, :, max(limits) :].any()
    for index, (alpha, limit, _) in enumerate(sentences):
        prefix = prefixes[index]
        scores = [
            score
            for score, ids in exhaustive_search(tables[index], limit, alpha)
            if list(ids[: len(prefix)]) == prefix
        ]
        answer = sentence(found, index)
        check_sentence(answer, tables[index], limit, alpha, scores)
        assert np.sum(answer.scores > -np.inf) == len(scores)
        assert np.all(answer.scores[1:] <= answer.scores[:-1])


def test_a_prefix_may_hold_what_is_forbidden_behind_it():
    tables = random_tables(3, 1.0, (1, 4, 6, 6))

    found, _ = run_search(tables, 40, 0.6, [4], [[2, 4]], never=(*FORBIDDEN_IDS, 2))

    scores = [
        score
        for score, ids in exhaustive_search(tables[0], 4, 0.6)
        if ids[:2] == (2, 4) and 2 not in ids[2:]
    ]
    assert len(scores) == 3
    np.testing.assert_allclose(
        found.scores[0][found.scores[0] > -np.inf], scores, rtol=1e-5
    )


@pytest.mark.parametrize("never", [(), (0, 2, 3), (0, 3, 4, 99)])
def test_only_forbidden_ids_are_never_chosen(never):
    # With none forbidden, padding and begin are tokens like others.
    table = random_tables(11, 1.0, (3, 5, 5))
    table = np.where(np.isinf(table), -2.0, table).astype("float32")

    found, _ = run_search(table[None], 21, 0.6, [3], never=never)

    expected = exhaustive_search(table, 3, 0.6, never)
    assert len(expected) == {(): 21, (0, 2, 3): 3, (0, 3, 4, 99): 3}[never]
    filled = len(expected)
    np.testing.assert_allclose(
        found.scores[0, :filled], [score for score, _ in expected], rtol=1e-5
    )
    for ids, (_, wanted) in zip(found.ids[0], expected, strict=False):
        assert tuple(ids) == (*wanted, *[0] * (3 - len(wanted)))
    check_fillers(sentence(sentence(found, 0), slice(filled, None)))


def check_with_plain_search(tables, beam_size, alpha, limits, num_hypotheses=None):
    """Compares a search with that in plain Python; returns its steps."""
    size = num_hypotheses or beam_size
    expected, needed, gaps = zip(
        *[
            plain_beam_search(table, beam_size, limit, alpha, size)
            for table, limit in zip(tables, limits, strict=True)
        ],
        strict=True,
    )
    # Rounding may turn what is nearly a tie.
    hypothesis.assume(min(gaps) > 1e-4)

    found, steps = run_search(
        tables, beam_size, alpha, limits, num_hypotheses=num_hypotheses
    )

    assert found.ids.shape == (len(limits), size, max(limits))
    assert steps == max(needed)
    for index, limit in enumerate(limits):
        check_sentence(
            sentence(found, index),
            tables[index],
            limit,
            alpha,
            [score for score, _ in expected[index]],
        )
    return steps


@pytest.mark.parametrize("num_hypotheses", [None, 1])
def test_narrow_beams_prune_and_stop_as_described(num_hypotheses):
    stops = []

    @settings(max_examples=150)
    @hypothesis.given(
        seed=seeds,
        spread=spreads,
        alpha=alphas,
        beam_size=st.integers(1, 5),
        limits=st.lists(st.integers(1, 8), min_size=1, max_size=3),
    )
    def check(seed, spread, alpha, beam_size, limits):
        tables = random_tables(seed, spread, (len(limits), 8, 9, 9))
        steps = check_with_plain_search(
            tables, beam_size, alpha, limits, num_hypotheses
        )
        stops.append((alpha > 0, steps < max(limits)))

    check()
    # Both kinds of bound have stopped a search before its limit.
    assert {(True, True), (False, True)} <= set(stops)


@settings(max_examples=30)
@hypothesis.given(
    seed=seeds,
    alpha=alphas,
    beam_size=st.integers(1, 3),
    limits=st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_steps_of_all_rounds_are_alike(seed, alpha, beam_size, limits):
    """Rounds end after 16 steps, and when a quarter of them is done."""
    tables = random_tables(seed, 1.0, (len(limits), 40, 6, 6))
    # The end comes late, but may come at any time.
    tables[..., END] -= 4
    check_with_plain_search(tables, beam_size, alpha, limits)


def path_table(path_probability, length, limit=6):
    """`end` at once, or the token 2 again and again and `end` as `length`th."""
    table = np.full((limit, 5, 5), -np.inf, "float32")
    table[..., END] = 0.0
    table[0, BEGIN, END] = math.log(1 - path_probability)
    table[0, BEGIN, 2] = math.log(path_probability)
    table[1 : length - 1, 2, END] = -np.inf
    table[1 : length - 1, 2, 2] = 0.0
    return table


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_of_equal_hypotheses_the_earlier_stays(num_hypotheses):
    table = path_table(0.5, length=3)

    found, steps = run_search(table[None], 2, 0.0, [3], num_hypotheses=num_hypotheses)

    # Once one is enough, an equal one is not waited for.
    assert steps == {1: 1, 2: 3}[num_hypotheses]
    expected = [[1, 0, 0], [2, 2, 1]][:num_hypotheses]
    np.testing.assert_array_equal(found.ids[0], expected)
    np.testing.assert_array_equal(found.scores[0], found.scores[0, 0])


@pytest.mark.parametrize("limit", [1, 3])
def test_slots_without_a_hypothesis_are_empty(limit):
    # The first sentence can only end; the second cannot end at all.
    tables = np.zeros((2, 3, 5, 5), "float32")
    tables[0, ..., 2:] = -np.inf
    tables[1, ..., END] = -np.inf

    found, _ = run_search(tables, 4, 0.6, [limit, limit])

    np.testing.assert_array_equal(found.ids[0, 0], [1, 0, 0][:limit])
    # Half of the probability is that of padding.
    np.testing.assert_allclose(found.scores[0, 0], -math.log(2), rtol=1e-5)
    assert not found.truncated[0, 0]
    check_fillers(sentence(sentence(found, 0), slice(1, None)))
    check_fillers(sentence(found, 1))


def rows_with_ties(width):
    """Small integers, now and then -inf, now and then nothing else."""
    rng = np.random.default_rng(width)
    rows = rng.integers(-3, 4, (7, width)).astype("float32")
    rows[rng.random(rows.shape) < 0.2] = -np.inf
    rows[0] = 0
    rows[1] = -np.inf
    rows[2, : width // 2] = -np.inf
    return rows


@tf.function(
    input_signature=[
        tf.TensorSpec([None, None], tf.float32),
        tf.TensorSpec([], tf.int32),
    ],
    autograph=False,
)
def find_best_of_any_width(rows, count):
    return blockwise_top_k(rows, count)


@pytest.mark.parametrize("find", [blockwise_top_k, find_best_of_any_width])
def test_the_best_are_those_of_a_stable_sort(find):
    for width in range(1, 201):
        rows = rows_with_ties(width)
        order = np.argsort(-rows, axis=1, kind="stable")
        for count in (1, 2, 5, 8, 33, 90, 300):
            values, ids = (x.numpy() for x in find(tf.constant(rows), count))
            wanted = order[:, :count]
            given = values.shape[1]

            # All, if there are no more; what is behind them is impossible.
            assert wanted.shape[1] <= given <= max(count, wanted.shape[1])
            np.testing.assert_array_equal(ids[:, : wanted.shape[1]], wanted)
            np.testing.assert_array_equal(
                values[:, : wanted.shape[1]], np.take_along_axis(rows, wanted, axis=1)
            )
            assert np.all(values[:, wanted.shape[1] :] == -np.inf)
            assert np.all((ids >= 0) & (ids < width))


@pytest.mark.parametrize("logit", [1.0, 1.5])
def test_what_is_as_likely_as_the_end_truncates_nothing(logit):
    """`check_sentence` has checked everything but ties."""
    tables = np.full((1, 3, 6, 6), -5, "float32")
    tables[0, 0, :, 2] = 5.0
    tables[0, 1, :, [END, 4]] = [[1.0], [logit]]

    found, _ = run_search(tables, 1, 0.6, [2])

    assert found.lengths == 2
    assert found.truncated == (logit > 1)
