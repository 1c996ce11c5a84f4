"""Tests of `train.loop.fused_cross_entropy`."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from train.loop.fused_cross_entropy import fused_cross_entropy, softmax_and_sums


def expected_sums(states, table, labels, label_smoothing):
    """The formulas, in float64: sums, and gradients by states and table."""
    states, table = (np.asarray(x, np.float64) for x in (states, table))
    logits = states @ table.T
    logits -= logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    wanted = np.full_like(logits, label_smoothing / (len(table) - 1))
    rows = np.arange(len(labels))
    wanted[rows, labels] = 1 - label_smoothing
    sums = [-(wanted * logs).sum(), -logs[rows, labels].sum()]
    by_logits = np.exp(logs) - wanted
    return sums, [by_logits @ table, by_logits.T @ states]


def found_sums(states, table, labels, label_smoothing, factor=1.0):
    with tf.GradientTape() as tape:
        tape.watch([states, table])
        sums = fused_cross_entropy(states, table, labels, label_smoothing)
        loss = factor * sums.loss
    return sums, tape.gradient(loss, [states, table])


compiled = tf.function(found_sums, autograph=False, reduce_retracing=True)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 30),
    st.integers(2, 40),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.7]),
    st.sampled_from([0.1, 1.0, 1e3]),
    st.integers(0, 99),
)
def test_equals_the_formula(num_tokens, vocabulary_size, width, smoothing, scale, seed):
    # Chunks have two rows for each feature: none, one, several, and a part.
    random = np.random.default_rng(seed)
    states = random.normal(size=(num_tokens, width)).astype(np.float32)
    table = scale * random.normal(size=(vocabulary_size, width)).astype(np.float32)
    table = table.astype(np.float32)
    labels = random.integers(0, vocabulary_size, num_tokens).astype(np.int32)
    expected, gradients = expected_sums(states, table, labels, smoothing)

    found, ours = found_sums(*map(tf.constant, (states, table, labels)), smoothing)

    # Terms of either sign, as large as the logits, may cancel.
    size = 1 + num_tokens * np.abs(states @ table.T).max(initial=0)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-6, atol=1e-6 * size)
    for mine, other, unit in zip(ours, gradients, (scale, num_tokens + 1), strict=True):
        error = 2e-6 * max(1, scale * width) * unit
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=error)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 4e-3), ("float16", 6e-4)]
)
def test_half_precision_rounds_products_alone(dtype, tolerance):
    random = np.random.default_rng(3)
    states = tf.cast(random.normal(size=(197, 4)), dtype)
    table = tf.constant(random.normal(size=(50, 4)), tf.float32)
    labels = tf.constant(random.integers(0, 50, 197), tf.int32)
    exact = np.array(tf.cast(states, tf.float32))
    rounded = np.array(tf.cast(tf.cast(table, dtype), tf.float32))
    expected, gradients = expected_sums(exact, rounded, np.array(labels), 0.1)

    # float16 scales its losses: a gradient that overflows would be skipped.
    found, ours = compiled(states, table, labels, 0.1, factor=2.0**10)

    np.testing.assert_allclose(found[:2], expected, rtol=tolerance)
    for mine, other in zip(ours, gradients, strict=True):
        mine = np.array(mine, np.float64) / 2.0**10
        error = np.linalg.norm(mine - other) / np.linalg.norm(other)
        assert error < 2 * tolerance, (error, tolerance)
    assert ours[0].dtype == states.dtype
    assert ours[1].dtype == tf.float32


@pytest.mark.parametrize(
    ("label", "right"), [(0, 1.0), (1, 1.0), (2, 0.0)], ids=["tie", "tie", "lower"]
)
def test_a_label_that_shares_the_highest_logit_is_right(label, right):
    states = tf.constant([[1.0]])
    table = tf.constant([[2.0], [2.0], [1.0]])

    sums, _ = found_sums(states, table, tf.constant([label]), 0.1)

    assert sums.accuracy == right


def test_bfloat16_adds_the_rows_of_a_frequent_label_exactly():
    # Each of 1,000 tokens adds the same small part to one row: a sum in
    # bfloat16 would stop growing at 256 of them.
    states = tf.ones((1000, 1), tf.bfloat16)
    table = tf.constant([[0.0], [-100.0]])
    labels = tf.ones(1000, tf.int32)

    sums, (_, gradient) = found_sums(states, table, labels, 0.0)

    np.testing.assert_allclose(sums.loss, 100_000.0)
    np.testing.assert_allclose(gradient, [[1000.0], [-1000.0]])


def test_logits_of_two_rows_a_feature_are_there_at_a_time(monkeypatch):
    shapes = []

    def spy(logits, labels):
        shapes.append(tuple(logits.shape))
        return softmax_and_sums(logits, labels)

    module = "train.loop.fused_cross_entropy"
    monkeypatch.setattr(f"{module}.softmax_and_sums", spy)
    states, table = tf.ones((37, 8)), tf.ones((50, 8))

    found_sums(states, table, tf.ones(37, tf.int32), 0.1)

    assert shapes == [(16, 50), (16, 50), (5, 50)]
