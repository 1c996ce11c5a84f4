"""Tests of `train.data.batches`."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.helpers.small_tasks import make_ids
from train.data.batches import BatchPlan
from train.data.batches import choose_boundaries
from train.data.batches import make_dataset
from train.data.vocabulary import EncodedPairs
from train.data.vocabulary import Ids


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
        for j in range(plan.steps_per_epoch):
            sources, _, labels, _ = plan.batch(epoch * plan.steps_per_epoch + j)
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
    assert sources(7, 3) != sources(7, 3 + plan.steps_per_epoch)


def test_shapes_are_few_and_rows_a_multiple_of_eight(plan):
    shapes = set()
    for j in range(2 * plan.steps_per_epoch):
        sources, targets, labels, _ = plan.batch(j)
        assert targets.shape == labels.shape
        shapes.add((*sources.shape, labels.shape[1]))

    assert shapes <= set(plan.shapes)
    assert len(plan.shapes) <= 16
    assert all(rows % 8 == 0 for rows, *_ in plan.shapes)
    assert all(
        rows * max(lengths) <= 400 or rows == 8
        for rows, *lengths in plan.shapes
    )


def test_targets_are_labels_shifted_by_the_begin_symbol(plan):
    _, targets, labels, tokens = plan.batch(0)

    assert tokens == (labels != 0).sum()
    for target, label in zip(targets, labels, strict=True):
        length = (label != 0).sum()
        assert target[:length].tolist() == [3, *label[: length - 1]][:length]
        assert not target[length:].any()
        assert length == 0 or label[length - 1] == 1


@pytest.mark.parametrize("num_replicas", [2, 4])
def test_replicas_share_out_the_rows_of_a_batch(plan, num_replicas):
    for j in range(plan.steps_per_epoch):
        whole = plan.batch(j)
        parts = [
            plan.batch(j, replica, num_replicas)
            for replica in range(num_replicas)
        ]
        for k in range(3):
            rows = whole[k].shape[0] // num_replicas
            assert {part[k].shape[0] for part in parts} == {rows}
            for replica, part in enumerate(parts):
                np.testing.assert_array_equal(
                    part[k], whole[k][replica::num_replicas]
                )
        assert {float(part[3]) for part in parts} == {float(whole[3])}


def test_fill_counts_real_tokens_over_positions(plan, pairs):
    positions = tokens = 0
    for j in range(plan.steps_per_epoch):
        sources, _, labels, _ = plan.batch(j)
        positions += sources.size + labels.size
        tokens += (sources != 0).sum() + (labels != 0).sum()

    assert plan.fill == pytest.approx(tokens / positions)


def lengths_like(name, count):
    """Returns the lengths of both sides of a synthetic corpus.

    A target has about the length of its source, with a spread of 8 %; one of
    the parser's has twice its length, and one of a summary half.
    """
    random = np.random.default_rng(0)
    if name != "Zipf":
        lengths = np.clip(random.normal(15, 4, count), 6, 40)
    else:  # Zipf: lengths of 10 to 100 tokens, one of n as likely as 1 / n.
        weights = 1 / np.arange(10, 101)
        lengths = random.choice(
            np.arange(10, 101), count, p=weights / weights.sum()
        )
    spread = random.normal(1, 0.08, count)
    spread *= {"trees": 2.1, "summaries": 0.5}.get(name, 1)
    return [lengths.astype(int), np.rint(lengths * spread).astype(int)]


@pytest.mark.parametrize("name", ["Multi30k", "Zipf", "trees", "summaries"])
def test_nine_of_ten_positions_are_tokens(name):
    sides = [
        Ids(np.ones(lengths.sum(), np.uint16), np.cumsum([0, *lengths]))
        for lengths in lengths_like(name, 30_000)
    ]

    plan = BatchPlan(EncodedPairs(*sides), batch_tokens=4096, seed=0)

    assert plan.fill > 0.9


def test_a_pair_comes_as_often_as_it_repeats(pairs):
    repeats = np.arange(len(pairs)) % 4
    repeated = dataclasses.replace(pairs, repeats=repeats)
    plan = BatchPlan(repeated, batch_tokens=400, seed=7)

    seen = np.zeros(len(pairs), int)
    tokens = target_tokens = 0
    for j in range(plan.steps_per_epoch):
        sources, _, labels, _ = plan.batch(j)
        np.add.at(seen, sources[sources[:, 0] != 0, 0] - 1000, 1)
        target_tokens += (labels != 0).sum()
        tokens += (labels != 0).sum() + (sources != 0).sum()

    np.testing.assert_array_equal(seen, repeats)
    assert (plan.tokens, plan.target_tokens) == (tokens, target_tokens)


def test_pairs_that_all_come_once_need_no_repeats(pairs, plan):
    once = dataclasses.replace(pairs, repeats=np.ones(len(pairs), np.int32))

    assert BatchPlan(once, 400, 7).batch(5)[0].tolist() == (
        plan.batch(5)[0].tolist()
    )


def test_an_epoch_is_drawn_once_though_threads_cross_its_end(pairs):
    plan = BatchPlan(pairs, batch_tokens=400, seed=7)
    draw, drawn = plan._draw, []
    plan._draw = lambda epoch: drawn.append(epoch) or draw(epoch)
    end = plan.steps_per_epoch

    for j in (end - 2, end, end - 1, end + 1, 2 * end - 1, 2 * end, 3 * end):
        plan.batch(j)

    assert drawn == [0, 1, 2, 3]
    assert len(plan._epochs) == 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 4))
def test_boundaries_leave_the_least_padding(lengths, count):
    lengths = np.array(lengths)

    def positions(boundaries):
        boundaries = np.array(sorted(boundaries))
        return boundaries[np.searchsorted(boundaries, lengths)].sum()

    chosen = choose_boundaries(lengths, count)
    others = [
        (*rest, lengths.max())
        for n in range(count)
        for rest in itertools.combinations(range(1, lengths.max()), n)
    ]

    assert chosen == sorted(set(chosen))
    assert chosen[-1] == lengths.max()
    assert len(chosen) <= count
    assert positions(chosen) == min(positions(other) for other in others)


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


def test_micro_batches_share_out_the_rows_of_a_batch(plan):
    """Three do not divide eight rows: a row of padding fills the last up."""
    dataset = make_dataset(plan, tf.distribute.get_strategy(), 0, 6, 3)

    for j, batch in enumerate(dataset.as_numpy_iterator()):
        whole = plan.batch(j)
        assert batch["num_tokens"] == whole[3]
        for name, expected in zip(
            ("source_ids", "target_ids", "labels"), whole, strict=False
        ):
            parts = batch[name]
            rows = -(-len(expected) // 3)
            assert parts.shape == (3, rows, expected.shape[1])
            joined = parts.transpose(1, 0, 2).reshape(3 * rows, -1)
            np.testing.assert_array_equal(joined[: len(expected)], expected)
            assert not joined[len(expected) :].any()
