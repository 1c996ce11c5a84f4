import hypothesis
import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from keras_transformer import Encoder, EncoderLayer
from tests.helpers.layer_checks import (
    check_dropout_of_sub_layers,
    mask_of,
    property_test,
    randomize_weights,
    residual_stream,
)
from tests.helpers.oracles.numpy_oracles import mask_of_lengths, random_array

# Widths of heads that do not add up to D, and no two sizes alike.
B, S, D = 3, 6, 8
SIZES = {"num_heads": 2, "key_dim": 5, "value_dim": 3, "intermediate_dim": 16}
NORMS = ["post", "pre"]


def make(cls, **kwargs):
    layer = cls(**{**SIZES, "dropout": 0.0, **kwargs})
    layer.build((None, None, D))
    randomize_weights(layer)
    return layer


@pytest.fixture(scope="module", params=NORMS)
def encoder(request):
    return make(Encoder, num_layers=2, norm=request.param)


@pytest.fixture(scope="module")
def encode(encoder):
    """The encoder in a graph, traced once for all shapes: eager is slower."""
    return tf.function(
        lambda x, mask: encoder(x, mask=mask),
        input_signature=[
            tf.TensorSpec((None, None, D), "float32"),
            tf.TensorSpec((None, None), "bool"),
        ],
    )


@pytest.mark.parametrize("norm", NORMS)
def test_a_layer_equals_section_3_1(norm):
    x, mask = random_array(B, S, D), mask_of_lengths([6, 1, 4], S)
    layer = make(EncoderLayer, norm=norm)
    sub_layers = {
        "attention": lambda y: layer.attention(y, y, value_mask=mask),
        "feed_forward": layer.feed_forward,
    }

    expected = residual_stream(layer, x, sub_layers)

    np.testing.assert_allclose(layer(x, mask=mask), expected, rtol=1e-5, atol=1e-5)


@property_test
@hypothesis.given(
    lengths=st.tuples(*[st.integers(1, S)] * B),
    padding=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_padding_changes_no_real_position(encode, lengths, padding, seed):
    mask = mask_of_lengths(lengths, S + padding)
    x = random_array(B, S + padding, D, seed=seed)
    other = np.where(mask[..., None], x, random_array(*x.shape, seed=seed + 1))

    outputs = np.array(encode(x, mask))
    short = np.array(encode(x[:, :S], mask[:, :S]))

    real = mask[:, :S]
    np.testing.assert_allclose(outputs[:, :S][real], short[real], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(outputs[mask], encode(other, mask)[mask])


def test_keras_fills_the_mask_and_hands_it_on(encoder):
    ids = np.array([[3, 1, 2, 0], [5, 0, 0, 0]])
    embedded = keras.layers.Embedding(9, D, mask_zero=True)(ids)

    outputs = encoder(embedded)

    np.testing.assert_array_equal(mask_of(outputs), ids != 0)
    plain = np.array(embedded)
    np.testing.assert_array_equal(outputs, encoder(plain, mask=ids != 0))
    assert np.abs(outputs - encoder(plain)).max() > 0.01


@pytest.mark.parametrize("norm", NORMS)
def test_dropout_falls_on_both_sub_layers_and_only_in_training(norm):
    layers = [make(EncoderLayer, norm=norm, dropout=rate) for rate in (0.0, 0.5)]
    names = {"attention", "feed_forward"}
    check_dropout_of_sub_layers(*layers, [random_array(B, S, D)], names)
