import dataclasses
import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.helpers.small_runs import make_ids
from train.data.batch_plan import BatchPlan, choose_pairs, count_chosen
from train.data.batches import make_dataset, make_replica_batch
from train.data.bucketing import (
    choose_boundaries,
    choose_row_multiple,
    count_micro_batches,
)
from train.data.encoded_pairs import EncodedPairs, Ids


def make_pairs(count=300, seed=0):
    random = np.random.default_rng(seed)
    sides = random.integers(2, 30, (2, count))
    return EncodedPairs(
        make_ids(list(enumerate(sides[0])), 1000),
        make_ids(list(enumerate(sides[1])), 5000),
    )


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture(scope="module")
def plan(pairs):
    return BatchPlan(pairs, batch_tokens=400, seed=7)


def test_every_pair_comes_once_an_epoch(plan, pairs):
    for epoch in range(2):
        seen = []
        for j in range(plan.batches_per_pass):
            sources, _, labels, _ = plan.batch(epoch * plan.batches_per_pass + j)
            real = sources[:, 0] != 0
            # The pair stays a pair: both sides name the same sequence.
            first = np.where(labels[real, 0] == 1, 0, labels[real, 0] - 4000)
            np.testing.assert_array_equal(first, sources[real, 0])
            seen += list(sources[real, 0])
        assert sorted(seen) == [1000 + i for i in range(len(pairs))]


def test_epochs_and_seeds_differ_and_a_batch_is_a_function_of_both(pairs, plan):
    def sources(seed, j):
        return BatchPlan(pairs, 400, seed).batch(j)[0].tolist()

    assert sources(7, 3) == plan.batch(3)[0].tolist()
    assert sources(7, 3) != sources(8, 3)
    assert sources(7, 3) != sources(7, 3 + plan.batches_per_pass)


def test_shapes_are_few_and_rows_a_multiple_of_eight(plan):
    shapes = set()
    for j in range(2 * plan.batches_per_pass):
        sources, targets, labels, _ = plan.batch(j)
        assert targets.shape == labels.shape
        shapes.add((*sources.shape, labels.shape[1]))

    assert shapes <= set(plan.shapes)
    assert len(plan.shapes) <= 16
    assert all(rows % 8 == 0 for rows, *_ in plan.shapes)
    assert all(
        rows * max(lengths) <= 400 or rows == 8 for rows, *lengths in plan.shapes
    )


def test_targets_are_labels_shifted_by_the_begin_symbol(plan):
    _, targets, labels, tokens = plan.batch(0)

    assert tokens == (labels != 0).sum()
    for target, label in zip(targets, labels, strict=True):
        length = (label != 0).sum()
        assert target[:length].tolist() == [3, *label[: length - 1]][:length]
        assert not target[length:].any()
        assert length == 0 or label[length - 1] == 1


def lengths_like(name, count):
    """Returns the lengths of both sides of a synthetic corpus.

    A target has about the length of its source, with a spread of 8 %; one of code
    has twice its length, and one of a summary half.
    """
    random = np.random.default_rng(0)
    if name == "WMT":  # A mean of about 30, and some of 250.
        lengths = np.clip(random.lognormal(3.2, 0.65, count), 2, 230)
    elif name != "Zipf":
        lengths = np.clip(random.normal(15, 4, count), 6, 40)
    else:  # Zipf: lengths of 10 to 100 tokens, one of n as likely as 1 / n.
        weights = 1 / np.arange(10, 101)
        lengths = random.choice(np.arange(10, 101), count, p=weights / weights.sum())
    spread = random.normal(1, 0.08, count)
    spread *= {"code": 2.1, "summaries": 0.5}.get(name, 1)
    return [lengths.astype(int), np.rint(lengths * spread).astype(int)]


def ids_of(lengths):
    return Ids(np.ones(lengths.sum(), np.uint16), np.cumsum([0, *lengths]))


@pytest.mark.parametrize("name", ["Multi30k", "Zipf", "code", "summaries"])
def test_nine_of_ten_positions_are_tokens(name):
    sides = map(ids_of, lengths_like(name, 30_000))

    plan = BatchPlan(EncodedPairs(*sides), batch_tokens=4096, seed=0)

    assert plan.fill > 0.9


def count_pairs(plan, epoch, count):
    seen = np.zeros(count, int)
    first = epoch * plan.batches_per_pass
    for j in range(first, first + plan.batches_per_pass):
        sources = plan.batch(j)[0]
        np.add.at(seen, sources[sources[:, 0] != 0, 0] - 1000, 1)
    return seen


def weighted(pairs, *parts):
    parts = tuple((count, Fraction(weight)) for count, weight in parts)
    return dataclasses.replace(pairs, parts=parts)


def test_a_weight_of_a_half_shows_the_other_half_in_the_next_epoch(pairs):
    mixture = weighted(pairs, (180, "1/2"), (70, 1), (50, "5/2"))
    plan = BatchPlan(mixture, batch_tokens=400, seed=7)

    first, second, third = (count_pairs(plan, e, len(pairs)) for e in range(3))

    # An odd number of pairs of a shape leaves one over, or takes one twice.
    assert (first + second)[:180].sum() == pytest.approx(180, abs=16)
    assert np.count_nonzero((first + second)[:180] != 1) <= 16
    assert np.count_nonzero(first[:180] != third[:180]) <= 2 * 16
    assert set(first[180:250]) == set(second[180:250]) == {1}
    assert set(first[250:]) == set(second[250:]) == {2, 3}
    assert first.sum() == second.sum() == third.sum()
    tokens = (first + second) @ mixture.targets.lengths / 2
    assert plan.target_tokens == pytest.approx(tokens, rel=0.05)


@settings(deadline=None)
@given(
    st.integers(1, 40),
    st.fractions(Fraction(1, 50), 20, max_denominator=50),
    st.integers(0, 100),
)
def test_in_as_many_epochs_as_pairs_each_comes_as_its_weight_says(count, weight, first):
    pairs = np.arange(100, 100 + count)
    drawn = [
        choose_pairs(pairs, weight, epoch, (7, 1))
        for epoch in range(first, first + count)
    ]

    assert {len(epoch) for epoch in drawn} == {count_chosen(count, weight)}
    seen = np.array([np.bincount(e - 100, minlength=count) for e in drawn])
    assert set(seen.sum(axis=0)) == {count_chosen(count, weight)}
    assert abs(seen.sum(axis=0)[0] - weight * count) < 1
    # And as evenly as it can be, from one epoch to another.
    assert (np.ptp(seen, axis=0) <= 1).all()
    assert (np.ptp(np.cumsum(seen, axis=0), axis=1) <= 1).all()


def test_any_batch_of_a_mixture_is_there_at_once(pairs):
    mixture = weighted(pairs, (180, "1/3"), (120, 2))
    whole = BatchPlan(mixture, batch_tokens=400, seed=7)
    shapes = []
    for j in range(2 * whole.batches_per_pass):
        expected = whole.batch(j)
        shapes.append(whole.shape(j))
        if j % 5 == 0:
            found = BatchPlan(mixture, batch_tokens=400, seed=7).batch(j)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)

    for epoch in np.split(np.array(shapes), 2):
        kinds, counts = np.unique(epoch, axis=0, return_counts=True)
        numbers = dict(zip(map(tuple, kinds.tolist()), counts, strict=True))
        assert numbers == {
            shape: count
            for shape, count in zip(whole.shapes, whole.num_batches, strict=True)
            if count
        }


def test_parts_that_weigh_one_have_the_batches_of_the_whole(pairs, plan):
    parts = BatchPlan(weighted(pairs, (100, 1), (200, 1)), 400, 7)

    for j in (5, plan.batches_per_pass + 3):
        for a, b in zip(parts.batch(j), plan.batch(j), strict=True):
            np.testing.assert_array_equal(a, b)
    assert (parts.tokens, parts.fill) == (plan.tokens, plan.fill)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 80), min_size=1, max_size=60), st.integers(1, 9))
def test_boundaries_leave_the_least_padding(lengths, count):
    lengths = np.array(lengths)
    fewest = {0: 0}  # Positions of all sequences up to a length.
    for _ in range(count):
        fewest = {
            end: min(
                cost + end * np.count_nonzero((lengths > j) & (lengths <= end))
                for j, cost in fewest.items()
                if j <= end
            )
            for end in range(lengths.max() + 1)
        }

    boundaries = np.array(choose_boundaries(lengths, count))

    assert len(boundaries) <= count
    assert (np.diff(boundaries) > 0).all()
    positions = boundaries[np.searchsorted(boundaries, lengths)].sum()
    assert positions == fewest[lengths.max()]


def test_long_sequences_need_little_memory():
    """A table of all pairs of lengths took 572 MiB."""
    lengths = np.random.default_rng(0).integers(1, 5_001, 50_000)

    tracemalloc.start()
    boundaries = choose_boundaries(lengths, 16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(boundaries) == 16
    assert peak < 20 * 2**20


def test_the_dataset_starts_anywhere_and_ends_where_told(plan):
    dataset = make_dataset(plan, tf.distribute.get_strategy(), 5, 8)

    batches = list(dataset.as_numpy_iterator())

    assert len(batches) == 3
    for j, batch in zip((5, 6, 7), batches, strict=True):
        sources, targets, labels, tokens = plan.batch(j)
        np.testing.assert_array_equal(batch["source_ids"][0], sources)
        np.testing.assert_array_equal(batch["target_ids"][0], targets)
        np.testing.assert_array_equal(batch["labels"][0], labels)
        assert batch["num_tokens"] == tokens


@settings(deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 3),
    st.integers(30, 300),
    st.sampled_from([8, 24, 32]),
)
def test_replicas_and_turns_share_out_the_rows_of_a_batch(
    j, num_replicas, limit, row_multiple
):
    """Where rows do not go up, rows of padding fill the last turn up."""
    pairs = make_pairs(120)
    plan = BatchPlan(pairs, 400, 7, row_multiple)
    whole = plan.batch(j)
    count = count_micro_batches(plan.shape(j), num_replicas, limit)

    batches = [
        make_replica_batch(plan, j, replica, num_replicas, limit)
        for replica in range(num_replicas)
    ]

    assert plan.shape(j) == (*whole[0].shape, whole[1].shape[1])
    assert plan.shape(j)[0] % row_multiple == 0
    assert {batch[3] for batch in batches} == {whole[3]}
    for number, expected in enumerate(whole[:3]):
        parts = [batch[number] for batch in batches]
        assert {len(part) for part in parts} == {count}
        assert parts[0][0].size <= limit
        joined = np.stack(parts, axis=1).transpose(2, 0, 1, 3)
        joined = joined.reshape(-1, expected.shape[1])
        np.testing.assert_array_equal(joined[: len(expected)], expected)
        assert not joined[len(expected) :].any()


@given(st.integers(1, 400), st.integers(1, 50), st.integers(1, 40))
def test_turns_are_the_fewest_that_leave_few_rows_empty(rows, most, length):
    count = count_micro_batches((rows, length, 1), 1, most * length)

    def empty(count):
        return count * -(-rows // count) - rows

    assert -(-rows // count) <= most
    assert empty(count) < rows / 8
    for fewer in range(1, count):
        assert -(-rows // fewer) > most or empty(fewer) >= rows / 8


def test_rows_are_a_multiple_of_eight_and_of_the_replicas():
    found = {n: choose_row_multiple(n) for n in (1, 2, 4, 8, 3, 12, 32)}

    assert found == {1: 8, 2: 8, 4: 8, 8: 8, 3: 24, 12: 24, 32: 32}


@pytest.mark.parametrize("name", ["Multi30k", "Zipf", "WMT"])
def test_few_slots_of_32_replicas_are_empty(name):
    """Of rows in multiples of 8, 104 took 128 slots: a fifth was empty."""
    pairs = EncodedPairs(*map(ids_of, lengths_like(name, 30_000)))
    plan = BatchPlan(pairs, 25_000, 0, choose_row_multiple(32))

    limits = (None, 256, 400, 800, 1_024, 4_096)
    for shape, limit in itertools.product(plan.shapes, limits):
        count = count_micro_batches(shape, 32, limit)
        slots = 32 * count * -(-shape[0] // (32 * count))
        assert shape[0] > 0.75 * slots
        if limit is None:
            assert shape[0] == slots
    # Nor is an update much smaller than it may be.
    longest = [rows * max(lengths) for rows, *lengths in plan.shapes]
    assert np.dot(longest, plan.num_batches) > 0.8 * 25_000 * sum(plan.num_batches)
