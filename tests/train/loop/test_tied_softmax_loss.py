import numpy as np
import pytest
import tensorflow as tf

from train.loop.tied_softmax_loss import label_losses


@pytest.mark.parametrize("num_tokens", [0, 7])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_equals_the_crossentropy_of_tensorflow(num_tokens, scale):
    random = np.random.default_rng(5)
    states = tf.constant(random.normal(size=(num_tokens, 3)), tf.float32)
    table = tf.constant(scale * random.normal(size=(11, 3)), tf.float32)
    labels = tf.constant(random.integers(0, 3, num_tokens), tf.int32)
    # Each token has a weight of its own.
    weights = tf.range(1.0, num_tokens + 1)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([states, table])
        losses, best = label_losses(states, table, labels)
        total = tf.reduce_sum(weights * losses)
        logits = states @ tf.transpose(table)
        expected = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        expected_total = tf.reduce_sum(weights * expected)

    tolerance = {"rtol": 1e-5, "atol": 1e-5 * scale}
    np.testing.assert_allclose(losses, expected, **tolerance)
    np.testing.assert_array_equal(best, tf.argmax(logits, axis=1))
    for ours, theirs in zip(
        tape.gradient(total, [states, table]),
        tape.gradient(expected_total, [states, table]),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, **tolerance)


def test_bfloat16_adds_the_rows_of_a_frequent_label_exactly():
    # Each of 1,000 tokens adds the same small part to one row: a sum in
    # bfloat16 would stop growing at 256 of them.
    states = tf.ones((1000, 1), tf.bfloat16)
    table = tf.constant([[0.0], [-100.0]])
    labels = tf.ones(1000, tf.int32)

    with tf.GradientTape() as tape:
        tape.watch(table)
        losses, _ = label_losses(states, table, labels)
    gradient = tape.gradient(losses, table)

    np.testing.assert_allclose(losses, 100.0)
    np.testing.assert_allclose(gradient, [[1000.0], [-1000.0]])
