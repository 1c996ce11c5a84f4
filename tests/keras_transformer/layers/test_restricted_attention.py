import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies as st

from keras_transformer import MultiHeadAttention, RestrictedSelfAttention
from tests.helpers.layer_checks import mask_of, property_test, randomize_weights
from tests.helpers.oracles.numpy_oracles import random_array

# A letter and a size for each axis, all distinct.
B, T, H, D = 2, 7, 3, 4
KEY_DIM, VALUE_DIM = 5, 8


def make_pair(radius, seed=2017):
    """The layer, and full attention with the same weights."""
    arguments = (H, KEY_DIM)
    options = {"value_dim": VALUE_DIM, "use_bias": True}
    layer = RestrictedSelfAttention(*arguments, radius, **options)
    layer.build((None, None, D))
    randomize_weights(layer, seed)
    full = MultiHeadAttention(*arguments, **options)
    full.build((None, None, D), (None, None, D))
    full.set_weights(layer.get_weights())
    return layer, full


@property_test
@given(data=st.data())
def test_equals_full_attention_with_a_mask(data):
    length = data.draw(st.integers(1, 12), "length")
    radius = data.draw(st.integers(1, 14), "radius")
    causal = data.draw(st.booleans(), "causal")
    real = data.draw(st.lists(st.booleans(), min_size=length, max_size=length), "real")
    layer, full = make_pair(radius)
    inputs = random_array(B, length, D, seed=length)
    mask = np.array([real, [True] * length])
    places = np.arange(length)
    distance = places[None, :] - places[:, None]
    near = (abs(distance) <= radius) & ((distance <= 0) | (not causal))
    allowed = near[None] & mask[:, None, :]

    found = layer(inputs, mask=mask, use_causal_mask=causal)

    expected = full(inputs, inputs, attention_mask=allowed)
    # A query without any key has nothing to say.
    sees = allowed.any(axis=-1)
    np.testing.assert_allclose(
        np.array(found)[sees], np.array(expected)[sees], atol=1e-5
    )
    assert np.all(np.isfinite(found))


def test_takes_and_passes_on_the_mask_of_an_embedding():
    ids = np.array([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    embedded = keras.layers.Embedding(10, D, mask_zero=True)(ids)
    layer, _ = make_pair(radius=2)

    outputs = layer(embedded)

    alone = layer(embedded[:1, :3])
    np.testing.assert_allclose(outputs[:1, :3], alone, atol=1e-5)
    np.testing.assert_array_equal(mask_of(outputs), ids != 0)


@pytest.mark.parametrize("shape", [(0, T, D), (B, 0, D)])
def test_takes_what_is_empty(shape):
    layer, _ = make_pair(radius=2)

    assert layer(np.zeros(shape, "float32")).shape == shape


def count_flops(layer, length):
    """Returns the operations of a call, as TensorFlow counts them."""
    call = tf.function(lambda x: layer(x)).get_concrete_function(
        tf.TensorSpec([1, length, D])
    )
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    profile = tf.compat.v1.profiler.profile(call.graph, options=options)
    return profile.total_float_ops


def test_costs_grow_with_the_length_and_not_with_its_square():
    layer, full = make_pair(radius=4)

    restricted = [count_flops(layer, length) for length in (64, 128, 256)]
    masked = [count_flops(lambda x: full(x, x), length) for length in (64, 128, 256)]

    assert restricted[1] - restricted[0] > 0
    growth = restricted[2] - restricted[1]
    assert growth == 2 * (restricted[1] - restricted[0])
    assert masked[2] - masked[1] > 3 * (masked[1] - masked[0])
