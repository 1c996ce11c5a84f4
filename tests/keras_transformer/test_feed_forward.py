"""Tests of `keras_transformer.feed_forward`."""

import numpy as np
import pytest

from keras_transformer import FeedForward
from tests.helpers.layer_checks import check_layer


def random_inputs(shape=(2, 5, 4)):
    return np.random.default_rng(seed=2017).normal(size=shape).astype("float32")


def test_keeps_the_promises_of_a_layer(tmp_path):
    check_layer(
        FeedForward,
        init_kwargs={"intermediate_dim": 8},
        inputs={"inputs": random_inputs()},
        output_shape=(2, 5, 4),
        num_weights=4,
        tmp_path=tmp_path,
    )


def test_equals_equation_2():
    inputs = random_inputs()
    layer = FeedForward(intermediate_dim=8)
    layer.build(inputs.shape)
    w1, b1, w2, b2 = (random_inputs(w.shape) for w in layer.weights)
    layer.set_weights([w1, b1, w2, b2])

    expected = np.maximum(0, inputs @ w1 + b1) @ w2 + b2

    np.testing.assert_allclose(layer(inputs), expected, rtol=1e-5, atol=1e-5)


def test_positions_do_not_see_each_other():
    inputs = random_inputs()
    changed = inputs.copy()
    changed[:, 3] += 1.0
    layer = FeedForward(intermediate_dim=8)

    difference = np.abs(layer(changed) - layer(inputs)).sum(axis=(0, 2))

    assert difference[3] > 0
    np.testing.assert_array_equal(np.delete(difference, 3), 0)


@pytest.mark.parametrize("intermediate_dim", [0, -1, 2.5, None])
def test_refuses_a_width_that_is_no_positive_int(intermediate_dim):
    with pytest.raises(ValueError, match="`intermediate_dim` must be"):
        FeedForward(intermediate_dim=intermediate_dim)


def test_refuses_an_unknown_width():
    with pytest.raises(ValueError, match="last dimension"):
        FeedForward(intermediate_dim=8).build((None, None, None))


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 5, 4)])
def test_takes_any_number_of_axes(shape):
    inputs = np.random.default_rng(1).normal(size=shape).astype("float32")
    layer = FeedForward(intermediate_dim=8)

    outputs = layer(inputs)

    rows = layer(inputs.reshape(-1, 1, 4))[:, 0]
    assert outputs.shape == shape
    np.testing.assert_allclose(outputs, rows.numpy().reshape(shape), rtol=1e-5)
