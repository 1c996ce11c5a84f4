import keras
import numpy as np
import pytest

from keras_transformer.layers.residual import Residual
from tests.helpers.layer_checks import randomize_weights
from tests.helpers.oracles.numpy_oracles import random_array

B, T, D = 2, 5, 4


def normalize(x, gamma, beta):
    """Layer normalization (Ba et al., 2016), epsilon as the authors' code."""
    variance = x.var(axis=-1, keepdims=True)
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(
        variance + 1e-6
    ) * gamma + beta


def make_residual(**kwargs):
    residual = Residual(**kwargs)
    residual.build((B, T, D), (B, T, D))
    randomize_weights(residual)
    return residual


# Small numbers show the epsilon: Keras's default would shrink the results.
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_post_norm_is_norm_of_the_sum(scale):
    x, y = scale * random_array(B, T, D), scale * random_array(B, T, D, seed=1)
    residual = make_residual(dropout=0.0, norm="post")

    np.testing.assert_array_equal(residual.prepare(x), x)
    np.testing.assert_allclose(
        residual(x, y), normalize(x + y, *residual.get_weights()), atol=1e-5
    )


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_pre_norm_is_the_sum_with_what_saw_the_norm(scale):
    x, y = scale * random_array(B, T, D), random_array(B, T, D, seed=1)
    residual = make_residual(dropout=0.0, norm="pre")

    np.testing.assert_allclose(
        residual.prepare(x), normalize(x, *residual.get_weights()), atol=1e-5
    )
    np.testing.assert_allclose(residual(x, y), x + y, atol=1e-6)


def test_dropout_falls_on_the_outputs_before_the_sum():
    keras.utils.set_random_seed(2017)
    x, y = np.ones((B, T, D), "float32"), random_array(B, T, D)
    residual = make_residual(dropout=0.75, norm="pre")

    added = residual(x, y, training=True) - x

    # Kept values are scaled up by 1 / (1 - dropout).
    dropped = np.isclose(added, 0)
    assert 0 < dropped.sum() < dropped.size
    np.testing.assert_allclose(added, np.where(dropped, 0, 4 * y), atol=1e-5)
    np.testing.assert_allclose(residual(x, y, training=False) - x, y, atol=1e-6)
