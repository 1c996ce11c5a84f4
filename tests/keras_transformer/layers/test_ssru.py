"""The recurrence that may stand in the place of self-attention (SSRU)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from keras_transformer.layers.cache import RecurrentCache
from keras_transformer.layers.ssru import SSRU

WIDTH = 5


@pytest.fixture(scope="module")
def layer():
    keras.utils.set_random_seed(3)
    layer = SSRU()
    layer.build((None, None, WIDTH))
    layer.forget.bias.assign(np.linspace(-1, 1, WIDTH))
    return layer


def by_the_formula(layer, inputs, mask, state):
    """Runs the recurrence position by position, as it is written."""
    forget, bias = layer.forget.get_weights()
    (update,) = layer.update.get_weights()
    outputs = np.zeros(inputs.shape)
    for t in range(inputs.shape[1]):
        x = inputs[:, t].astype(np.float64)
        f = 1 / (1 + np.exp(-(x @ forget + bias)))
        new = f * state + (1 - f) * (x @ update)
        state = np.where(mask[:, t, None], new, state)
        outputs[:, t] = np.maximum(0, state)
    return outputs, state


@settings(max_examples=30, deadline=None)
@given(length=st.integers(1, 19), rows=st.integers(1, 3), seed=st.integers(0, 99))
def test_it_is_the_formula_step_by_step(layer, length, rows, seed):
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(rows, length, WIDTH)).astype("float32")
    mask = random.random((rows, length)) < 0.7
    state = random.normal(size=(rows, WIDTH)).astype("float32")

    start = RecurrentCache(tf.constant(state), tf.constant(4))

    outputs, cache = layer(inputs, mask=mask, cache=start)

    expected, last = by_the_formula(layer, inputs, mask, state)
    np.testing.assert_allclose(outputs, expected, atol=2e-6)
    np.testing.assert_allclose(cache.state, last, atol=2e-6)
    assert cache.length == 4 + length


@pytest.mark.parametrize("jit_compile", [False, True])
def test_an_unknown_length_has_the_same_outputs_and_gradients(layer, jit_compile):
    inputs = np.random.default_rng(1).normal(size=(2, 11, WIDTH))
    inputs = tf.constant(inputs, tf.float32)

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(y * tf.cumsum(tf.ones_like(y), axis=1))
        return y, tape.gradient(loss, [x, *layer.trainable_weights])

    unknown = [tf.TensorSpec([None, None, WIDTH])]
    traced = tf.function(run, input_signature=unknown, jit_compile=jit_compile)
    for one, other in zip(
        tf.nest.flatten(run(inputs)), tf.nest.flatten(traced(inputs)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
