import functools

import hypothesis
import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from keras import ops

from keras_transformer import Decoder, DecoderLayer
from tests.helpers.layer_checks import (
    check_dropout_of_sub_layers,
    mask_of,
    property_test,
    randomize_weights,
    residual_stream,
)
from tests.helpers.oracles.numpy_oracles import mask_of_lengths, random_array

# Widths of heads that do not add up to D, and no two sizes alike.
B, T, S, D = 3, 5, 6, 8
SIZES = {"num_heads": 2, "key_dim": 7, "value_dim": 4, "intermediate_dim": 16}
NORMS = ["post", "pre"]


def make(cls, memory=True, **kwargs):
    layer = cls(**{**SIZES, "dropout": 0.0, **kwargs})
    layer.build(*[(None, None, D)] * (1 + memory))
    randomize_weights(layer)
    return layer


@pytest.fixture(scope="module", params=NORMS)
def decoder(request):
    return make(Decoder, num_layers=2, norm=request.param)


@pytest.fixture(scope="module")
def decode(decoder):
    """The decoder in a graph, traced once for all shapes: eager is slower."""
    states = tf.TensorSpec((None, None, D), "float32")
    mask = tf.TensorSpec((None, None), "bool")
    return tf.function(
        lambda target, memory, target_mask, memory_mask: decoder(
            target, memory, target_mask=target_mask, memory_mask=memory_mask
        ),
        input_signature=[states, states, mask, mask],
    )


TARGET, MEMORY = random_array(B, T, D, seed=1), random_array(B, S, D, seed=2)
TARGET_MASK = mask_of_lengths([5, 2, 4], T)
MEMORY_MASK = mask_of_lengths([1, 6, 3], S)
MASKS = {"target_mask": TARGET_MASK, "memory_mask": MEMORY_MASK}


@pytest.mark.parametrize("norm", NORMS)
def test_a_layer_equals_section_3_1(norm):
    layer = make(DecoderLayer, norm=norm)
    sub_layers = {
        "self_attention": lambda y: layer.self_attention(
            y, y, value_mask=TARGET_MASK, use_causal_mask=True
        ),
        "memory_attention": lambda y: layer.memory_attention(
            y, MEMORY, value_mask=MEMORY_MASK
        ),
        "feed_forward": layer.feed_forward,
    }

    expected = residual_stream(layer, TARGET, sub_layers)

    outputs = layer(TARGET, MEMORY, **MASKS)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


@property_test
@hypothesis.given(position=st.integers(0, T - 1), seed=st.integers(0, 2**32 - 1))
def test_no_position_sees_a_later_one(decode, position, seed):
    changed = TARGET.copy()
    changed[:, position] = random_array(B, D, seed=seed)
    masks = (np.ones((B, T), bool), MEMORY_MASK)

    difference = decode(TARGET, MEMORY, *masks) - decode(changed, MEMORY, *masks)

    difference = np.abs(difference).max(axis=(0, 2))
    np.testing.assert_array_equal(difference[:position], 0)
    assert (difference[position:] > 1e-5).all()


@property_test
@hypothesis.given(
    target_lengths=st.tuples(*[st.integers(1, T)] * B),
    memory_lengths=st.tuples(*[st.integers(1, S)] * B),
    target_padding=st.integers(0, 7),
    memory_padding=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_padding_changes_no_real_position(
    decode, target_lengths, memory_lengths, target_padding, memory_padding, seed
):
    long_t, long_s = T + target_padding, S + memory_padding
    target_mask = mask_of_lengths(target_lengths, long_t)
    memory_mask = mask_of_lengths(memory_lengths, long_s)
    target = random_array(B, long_t, D, seed=seed)
    memory = random_array(B, long_s, D, seed=seed + 1)

    outputs = decode(target, memory, target_mask, memory_mask)
    short = decode(
        *(target[:, :T], memory[:, :S]), *(target_mask[:, :T], memory_mask[:, :S])
    )

    real = target_mask[:, :T]
    np.testing.assert_allclose(outputs[:, :T][real], short[real], rtol=1e-5, atol=1e-5)


def test_padding_in_the_middle_is_not_looked_at_either(decoder):
    # Causality hides padding at the end, so put some where only masks do.
    mask = np.ones((B, T), bool)
    mask[:, 2] = False
    changed = TARGET.copy()
    changed[:, 2] += 5.0

    outputs, others = (
        np.array(decoder(x, MEMORY, target_mask=mask)) for x in (TARGET, changed)
    )

    np.testing.assert_array_equal(outputs[mask], others[mask])
    assert (outputs[~mask] != others[~mask]).any()


def test_keras_fills_both_masks_and_hands_on_that_of_the_target(decoder):
    target_ids = np.array([[3, 0, 2, 0], [5, 1, 0, 0]])
    memory_ids = np.array([[8, 2, 0, 0, 0], [0, 0, 4, 1, 0]])
    embedding = keras.layers.Embedding(9, D, mask_zero=True)
    target, memory = embedding(target_ids), embedding(memory_ids)

    outputs = decoder(target, memory)

    expected = decoder(
        np.array(target),
        np.array(memory),
        target_mask=target_ids != 0,
        memory_mask=memory_ids != 0,
    )
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(mask_of(outputs), target_ids != 0)


@pytest.mark.parametrize("norm", NORMS)
def test_dropout_falls_on_each_sub_layer_and_only_in_training(norm):
    layers = [make(DecoderLayer, norm=norm, dropout=rate) for rate in (0.0, 0.5)]
    names = {"self_attention", "memory_attention", "feed_forward"}
    check_dropout_of_sub_layers(*layers, [TARGET, MEMORY], names)


def decode_by_steps(step, target, cache, steps):
    outputs = []
    for part in np.split(target, np.cumsum(steps)[:-1], axis=1):
        output, cache = step(part, cache)
        outputs.append(output)
    return np.concatenate(outputs, axis=1)


@pytest.mark.parametrize(("beams", "steps"), [(1, [2, 1, 2]), (3, [1] * T)], ids=str)
def test_cached_equals_uncached_for_every_beam(decoder, beams, steps):
    target = random_array(B * beams, T, D)
    # More capacity than is used: unused positions must be ignored.
    cache = decoder.make_cache(T + 4, MEMORY, num_beams=beams)

    outputs = decode_by_steps(
        lambda x, cache: decoder(
            x,
            np.full_like(MEMORY, np.nan),  # Ignored.
            # Nor this, with a cache.
            target_mask=np.zeros(x.shape[:2], bool),
            memory_mask=MEMORY_MASK,
            cache=cache,
        ),
        target,
        cache,
        steps,
    )

    expected = decoder(
        target,
        np.repeat(MEMORY, beams, axis=0),
        memory_mask=np.repeat(MEMORY_MASK, beams, axis=0),
    )
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


def test_a_recurrence_ignores_the_mask_with_a_cache():
    layer = DecoderLayer(2, 5, mixer="ssru")
    expected = layer(TARGET)

    outputs = decode_by_steps(
        lambda x, cache: layer(
            x, target_mask=np.zeros(x.shape[:2], bool), cache=(cache, None)
        ),
        TARGET,
        layer.make_cache(B, T),
        [1] * T,
    )

    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


def test_a_cache_has_the_compute_dtype():
    decoder = Decoder(1, **SIZES, dropout=0.0, dtype="mixed_bfloat16")
    decoder.build(TARGET.shape, MEMORY.shape)
    cache = decoder.make_cache(T, ops.cast(MEMORY, "bfloat16"))

    outputs, longer = decoder(TARGET[:, :1], cache=cache)

    tensors = [outputs, *cache[1][0]]
    for self_cache in (cache[0][0], longer[0][0]):
        tensors += [self_cache.keys, self_cache.values]
    assert {tensor.dtype for tensor in tensors} == {tf.bfloat16}


@pytest.fixture(scope="module", params=NORMS)
def language_model(request):
    return make(Decoder, num_layers=2, norm=request.param, memory=False)


def test_a_language_model_equals_an_encoder_with_a_causal_mask(language_model):
    """Layer by layer, since an encoder has no such mask of its own."""
    x = TARGET
    for layer in language_model.layers:
        assert layer.memory_attention is None
        attend = functools.partial(layer.self_attention, use_causal_mask=True)
        sub_layers = {
            "self_attention": lambda y, attend=attend: attend(y, y),
            "feed_forward": layer.feed_forward,
        }
        x = residual_stream(layer, x, sub_layers)
    if language_model.norm == "pre":
        x = language_model.normalization(x)

    np.testing.assert_allclose(language_model(TARGET), x, rtol=1e-5, atol=1e-6)
    _, scores = language_model(TARGET, return_attention_scores=True)
    assert scores[0][1] is None


def test_a_language_model_may_be_cached(language_model):
    outputs = decode_by_steps(
        lambda x, cache: language_model(x, cache=cache),
        TARGET,
        language_model.make_cache(T + 1, rows=B),
        [2, 1, 2],
    )

    np.testing.assert_allclose(outputs, language_model(TARGET), rtol=1e-5, atol=1e-5)


def test_refuses_a_memory_that_it_was_not_built_for(language_model):
    with pytest.raises(ValueError, match="must be None, .* Received: a te"):
        language_model(TARGET, MEMORY)


def test_refuses_to_do_without_a_memory_that_it_was_built_for(decoder):
    for arguments in ({}, {"cache": decoder.make_cache(T, rows=B)}):
        with pytest.raises(ValueError, match="must be a tensor, .*ived: None"):
            decoder(TARGET, **arguments)


def test_heads_share_the_width_where_nobody_says_theirs():
    given = {"num_heads": 2, "intermediate_dim": 16}
    shapes = (None, None, D), (None, None, D)
    layer, other = DecoderLayer(**given), DecoderLayer(**given, key_dim=D // 2)
    layer.build(*shapes)
    other.build(*shapes)

    assert layer.self_attention.key_dim == D // 2
    assert [w.shape for w in layer.weights] == [w.shape for w in other.weights]
    # Omitted arguments stay `None`: the width comes from the inputs.
    assert layer.get_config()["key_dim"] is None


def test_refuses_to_guess_a_width_that_is_no_whole_number():
    with pytest.raises(ValueError, match="`key_dim` must .*3, width 8"):
        DecoderLayer(3, 16).build((None, None, D), (None, None, D))
