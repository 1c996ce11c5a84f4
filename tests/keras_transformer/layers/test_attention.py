import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import MultiHeadAttention, copy_attention_weights
from keras_transformer.layers.attention import (
    fused_attention,
    scaled_dot_product_attention,
)
from keras_transformer.layers.cache import FixedCache
from tests.helpers.layer_checks import randomize_weights
from tests.helpers.oracles.numpy_oracles import assert_close, random_array, softmax

# A letter and a size for each axis, all distinct.
B, T, S, H = 2, 7, 6, 3
D, D_VALUE, D_KEY = 4, 11, 9
KEY_DIM, VALUE_DIM = 5, 8


def random_mask(*shape, seed=2017):
    """A mask that leaves every query its first key at least."""
    mask = np.random.default_rng(seed).random(shape) < 0.6
    mask[..., 0] = True
    return mask


def make_layer(*shapes, seed=2017, **kwargs):
    """A layer with biases and no two axes of a size, of known weights."""
    kwargs = {"use_bias": True, "value_dim": VALUE_DIM, **kwargs}
    layer = MultiHeadAttention(H, KEY_DIM, **kwargs)
    layer.build(*shapes)
    randomize_weights(layer, seed)
    return layer


def test_kernels_start_with_the_fans_of_the_whole_projection():
    layer = MultiHeadAttention(num_heads=8, key_dim=32)
    layer.build((None, None, 40), (None, None, 40))

    for kernel in layer.get_weights():
        limit = np.sqrt(6 / (40 + 8 * 32))  # Glorot, 2-D
        assert 0.99 * limit < np.abs(kernel).max() <= limit


def test_a_functional_model_gets_all_that_a_call_returns():
    query, value = keras.Input((None, D)), keras.Input((S, D_VALUE))
    cache = FixedCache(
        keras.Input((H, S, KEY_DIM)),
        keras.Input((H, S, VALUE_DIM)),
        keras.Input(batch_shape=(), dtype="int32"),
    )
    layer = MultiHeadAttention(H, KEY_DIM, VALUE_DIM)

    _, scores = layer(query, value, return_attention_scores=True)
    outputs, *_, (keys, values, _) = layer(
        query, value, cache=cache, return_attention_scores=True
    )

    assert outputs.shape == (None, None, D)
    assert scores.shape == (None, H, None, S)
    assert keys.shape == (None, H, S, KEY_DIM)
    assert values.shape == (None, H, S, VALUE_DIM)


@pytest.mark.parametrize("num_heads", [1, 2, 32])
def test_equals_the_heads_of_section_3_2_2_one_by_one(num_heads):
    query, value = random_array(B, T, D), random_array(B, S, D_VALUE)
    layer = MultiHeadAttention(num_heads, KEY_DIM, VALUE_DIM)
    layer.build(query.shape, value.shape)
    randomize_weights(layer)
    w_q, w_k, w_v, w_o = layer.get_weights()

    heads = []
    for i in range(num_heads):
        d_k = slice(i * KEY_DIM, (i + 1) * KEY_DIM)
        d_v = slice(i * VALUE_DIM, (i + 1) * VALUE_DIM)
        logits = query @ w_q[:, d_k] @ (value @ w_k[:, d_k]).swapaxes(1, 2)
        heads.append(softmax(logits / np.sqrt(KEY_DIM)) @ value @ w_v[:, d_v])
    expected = np.concatenate(heads, axis=-1) @ w_o

    # Sums over all heads of terms of the size of `expected`, so relative.
    scale = np.abs(expected).max()
    assert_close(layer(query, value) / scale, expected / scale)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"use_causal_mask": True},
        {"value_mask": random_mask(B, S)},
        {"key_mask": random_mask(B, S)},
        {"attention_mask": random_mask(B, T, S)},
        {"attention_mask": random_mask(B, H, T, S)},
        {
            "use_causal_mask": True,
            "value_mask": random_mask(B, S, seed=1),
            "key_mask": random_mask(B, S, seed=2),
            "attention_mask": random_mask(B, T, S, seed=3),
        },
    ],
    ids="+".join,
)
def test_equals_the_layer_of_keras(use_bias, masks):
    query = random_array(B, T, D, seed=1)
    value = random_array(B, S, D_VALUE, seed=2)
    key = random_array(B, S, D_KEY, seed=3)
    shapes = (query.shape, value.shape, key.shape)
    layer = make_layer(*shapes, use_bias=use_bias)
    oracle = keras.layers.MultiHeadAttention(H, KEY_DIM, VALUE_DIM, use_bias=use_bias)
    oracle.build(*shapes)
    copy_attention_weights(layer, oracle)
    arguments = {**masks, "return_attention_scores": True}

    outputs, scores = layer(query, value, key, **arguments)
    their_outputs, their_scores = oracle(query, value, key, **arguments)

    assert_close(scores, their_scores)
    assert_close(outputs, their_outputs)


def test_the_softmax_runs_in_float32():
    # One feature and queries that are powers of two: exact logits.
    query = np.broadcast_to(2.0 ** np.arange(-3, T - 3)[:, None], (B, H, T, 1))
    query = ops.cast(query, "bfloat16")
    key = ops.cast(random_array(B, H, S, 1), "bfloat16")

    _, weights = scaled_dot_product_attention(query, key, key)

    logits = ops.cast(query * ops.swapaxes(key, 2, 3), "float32")
    expected = ops.cast(softmax(np.array(logits)), "bfloat16")
    assert weights.dtype == "bfloat16"
    np.testing.assert_array_equal(
        ops.cast(weights, "float32"), ops.cast(expected, "float32")
    )


@pytest.mark.parametrize("floatx", ["bfloat16", "float16", "float64"])
def test_masks_do_not_hang_on_floatx(floatx):
    query = random_array(B, T, D)
    layer = make_layer(query.shape, query.shape, dtype="float32")
    mask = random_mask(B, T)
    expected = layer(query, query, value_mask=mask, use_causal_mask=True)
    keras.config.set_floatx(floatx)
    try:
        outputs = layer(query, query, value_mask=mask, use_causal_mask=True)
    finally:
        keras.config.set_floatx("float32")

    np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("argument", ["value", "key"])
def test_keras_fills_the_mask_of_an_embedding(argument):
    ids = np.array([[3, 0, 2, 0, 0, 1], [5, 4, 3, 2, 1, 0]])
    embedded = keras.layers.Embedding(9, D, mask_zero=True)(ids)
    query, plain = random_array(B, T, D), random_array(B, S, D)
    layer = make_layer(query.shape, plain.shape)
    tensors = {"value": plain, "key": plain, argument: embedded}
    arrays = {name: np.array(tensor) for name, tensor in tensors.items()}

    filled = layer(query, **tensors)

    expected = layer(query, **arrays, attention_mask=(ids != 0)[:, None, :])
    assert_close(filled, expected)
    assert np.abs(filled - layer(query, **arrays)).max() > 0.01


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, fused_attention])
def test_masking_is_exact_however_large_the_logits(attend):
    key = np.array([-1e6, 100.0, 1e9], "float32")[None, None, :, None]
    query, values = np.ones((1, 1, 2, 1), "float32"), np.eye(3, dtype="float32")
    mask = np.array([[False, False, False], [True, False, False]])

    outputs = attend(query, key, values[None, None], mask)
    if attend is scaled_dot_product_attention:
        outputs, _ = outputs

    np.testing.assert_allclose(outputs[0, 0], [[1 / 3] * 3, [1, 0, 0]])


def test_dropout_falls_on_the_weights_but_not_on_those_returned():
    keras.utils.set_random_seed(2017)
    query, value = random_array(B, T, D), random_array(B, S, D_VALUE)
    layer = make_layer(query.shape, value.shape, dropout=0.5)
    arguments = {"return_attention_scores": True}

    outputs, scores = layer(query, value, **arguments)
    dropped, scores_in_training = layer(query, value, training=True, **arguments)

    assert_close(scores_in_training, scores)
    assert_close(np.sum(scores, axis=-1), np.ones((B, H, T)))
    assert np.abs(dropped - outputs).max() > 0.1
    # As where nobody asks for weights.
    assert_close(layer(query, value), outputs)
    assert np.abs(layer(query, value, training=True) - outputs).max() > 0.1


def test_without_a_causal_mask_all_that_a_cache_holds_is_attended_to():
    old, new = random_array(B, 5, D, seed=1), random_array(B, 2, D, seed=2)
    layer = make_layer(new.shape, old.shape)

    outputs, scores, _ = layer(
        new,
        new,
        cache=FixedCache(*layer.project_keys_values(old), np.int32(1)),
        return_attention_scores=True,
    )

    together = np.concatenate([old[:, :1], new], axis=1)
    assert scores.shape == (B, H, 2, 5)
    assert_close(outputs, layer(new, together))


def test_a_cache_is_not_masked_by_the_mask_of_the_new_keys():
    ids = np.array([[3, 0], [0, 5]])
    masked = keras.layers.Embedding(9, D, mask_zero=True)(ids)
    layer = make_layer(masked.shape, masked.shape)
    held = layer.project_keys_values(random_array(B, 5, D))
    cache = FixedCache(*held, np.int32(2))

    outputs, _ = layer(masked, masked, cache=cache)

    plain = np.array(masked)
    np.testing.assert_array_equal(outputs, layer(plain, plain, cache=cache)[0])


@pytest.mark.parametrize(
    ("wrong", "shapes"),
    [
        *((name, [(4, D), (2, 3, 4, D)]) for name in ("query", "value", "key")),
        ("attention_mask", [(4,), (1, 2, H, 4, 4)]),
    ],
)
def test_refuses_inputs_of_another_rank(wrong, shapes):
    inputs = dict.fromkeys(("query", "value", "key"), random_array(2, 4, D))
    layer = MultiHeadAttention(H, KEY_DIM)
    layer.build(*[x.shape for x in inputs.values()])

    for shape in shapes:
        with pytest.raises(ValueError, match=rf"`{wrong}` must be of shape"):
            layer(**{**inputs, wrong: random_array(*shape)})


@pytest.mark.parametrize("length", [1, 3])
def test_refuses_more_positions_than_a_cache_has_room_for(length):
    x = random_array(B, length, D)
    layer = MultiHeadAttention(H, KEY_DIM)
    layer.build(x.shape, x.shape)
    held = layer.project_keys_values(np.zeros((B, 5, D), "float32"))
    for index in (6 - length, 5):
        with pytest.raises(
            ValueError, match=f"capacity of 5 .* {length} positions after {index}"
        ):
            layer(x, x, cache=FixedCache(*held, np.int32(index)))

    layer(x, x, cache=FixedCache(*held, np.int32(5 - length)))
