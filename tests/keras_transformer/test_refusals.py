"""Tests of the error messages of layers, losses and options."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import keras_transformer
from keras_transformer import (
    SSRU,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionEmbedding,
    RestrictedSelfAttention,
    SearchOptions,
    SinePositionEncoding,
    SmoothedCrossentropy,
    TokenEmbedding,
    Transformer,
    TransformerSchedule,
)
from keras_transformer.residual import Residual

SIZES = {"num_heads": 2, "key_dim": 3, "value_dim": 4, "intermediate_dim": 5}
STACK = {"num_layers": 2, **SIZES}
MODEL = functools.partial(
    Transformer.from_preset, "base", **STACK, vocabulary_size=9, hidden_dim=6
)
# A function that makes it, and an argument that must be a positive int.
POSITIVE_INTS = [
    (functools.partial(MultiHeadAttention, 2, 3), "value_dim"),
    (functools.partial(MultiHeadAttention, key_dim=3), "num_heads"),
    (functools.partial(MultiHeadAttention, 2), "key_dim"),
    (functools.partial(RestrictedSelfAttention, 2, 3), "radius"),
    (functools.partial(TokenEmbedding, 9), "hidden_dim"),
    (functools.partial(TokenEmbedding, hidden_dim=4), "vocabulary_size"),
    (PositionEmbedding, "sequence_length"),
    (FeedForward, "intermediate_dim"),
    (TransformerSchedule, "hidden_dim"),
    (functools.partial(TransformerSchedule, 6), "warmup_steps"),
    *(
        (functools.partial(stack, **STACK), name)
        for stack in (Encoder, Decoder)
        for name in STACK
    ),
    *((MODEL, name) for name in (*STACK, "vocabulary_size", "hidden_dim")),
    (MODEL, "sequence_length"),
    (functools.partial(MODEL, positions="learned"), "sequence_length"),
]
LAYERS = {EncoderLayer: SIZES, DecoderLayer: SIZES, Encoder: STACK, Decoder: STACK}
RESIDUALS = [
    Residual,
    MODEL,
    *(functools.partial(layer, **sizes) for layer, sizes in LAYERS.items()),
]
UNKNOWN = (None, None, None)
KNOWN = (None, None, 6)
ATTENTION = functools.partial(MultiHeadAttention, 2, 3)
REFUSALS = [
    *(
        (f"`{name}` must be .*{name}={value!r}", make, {name: value})
        for make, name in POSITIVE_INTS
        for value in (0, -1, 2.5, True)
    ),
    *(
        (r"`dropout` must be a number in \[0, 1\)", make, {"dropout": value})
        for make in (*RESIDUALS, ATTENTION)
        for value in (-0.1, 1.0, float("nan"), "0.1", None)
    ),
    *(
        (
            "`norm` must be one of 'post', 'pre'.*norm=",
            make,
            {"dropout": 0.1, "norm": value},
        )
        for make in RESIDUALS
        for value in ("Post", "", None)
    ),
    (
        "`positions` must be one of 'sine', 'learned'.*Received",
        MODEL,
        {"positions": "rotary"},
    ),
    *(
        (
            "`max_wavelength` must be a positive",
            SinePositionEncoding,
            {"max_wavelength": value},
        )
        for value in (0, -1.5, "10", None)
    ),
    *(
        (
            "`scale` must be a positive number",
            TransformerSchedule,
            {"hidden_dim": 6, "scale": value},
        )
        for value in (0, -1.0, np.nan, "1", None)
    ),
    *(
        (
            r"`label_smoothing` .* in \[0, 1\)",
            SmoothedCrossentropy,
            {"label_smoothing": value},
        )
        for value in (-0.1, 1.0, "0.1", None, np.nan)
    ),
    (
        "`reduction` must be one of",  # It would count padding.
        SmoothedCrossentropy,
        {"reduction": "sum_over_batch_size"},
    ),
    *(
        (
            "`norm_epsilon` must be a positive number",
            make,
            {"dropout": 0.1, "norm_epsilon": value},
        )
        for make in RESIDUALS
        for value in (0, -1.0, None)
    ),
    *(
        (f"`beam_size`.*={size}$", SearchOptions, {"beam_size": size})
        for size in (0, -1, 2.5, np.int64(0))
    ),
    *(
        (
            f"`num_hypotheses`.*={count}",
            SearchOptions,
            {"beam_size": 2, "num_hypotheses": count},
        )
        for count in (-1, 0, 3, 1.5)
    ),
    (
        "`num_hypotheses`.*=0",
        SearchOptions,
        {"beam_size": tf.constant(2), "num_hypotheses": 0},
    ),
    *(
        (f"`{name}` must be .*={value}$", SearchOptions, {name: value})
        for name in ("no_repeat_ngram", "min_length")
        for value in (-1, 1.5)
    ),
    *(
        (
            f"`max_extra_length` must be an int, 0 or more.*={value}$",
            functools.partial(MODEL(sequence_length=9).generate, [[5, 1]]),
            {"max_extra_length": value},
        )
        for value in (-1, 2.5)
    ),
    *(
        (f"last dimension of `{name}`", ATTENTION().build, shapes)
        for name in ("query", "value", "key")
        for shapes in [
            {
                f"{other}_shape": UNKNOWN if other == name else KNOWN
                for other in ("query", "value", "key")
            }
        ]
    ),
    *(
        (
            f"last dimension of `{name}`",
            layer(**LAYERS[layer]).build,
            {"target_shape": KNOWN, "memory_shape": KNOWN, **shape},
        )
        for layer in (DecoderLayer, Decoder)
        for name in ("target", "memory")
        for shape in [{f"{name}_shape": UNKNOWN}]
    ),
    *(
        ("last dimension", layer.build, {"input_shape": UNKNOWN})
        for layer in (
            FeedForward(8),
            EncoderLayer(**SIZES),
            Encoder(**STACK),
            PositionEmbedding(9),
            SinePositionEncoding(),
            SSRU(),
        )
    ),
    (
        "may have 4 positions at most",
        PositionEmbedding(4),
        {"inputs": np.zeros((2, 5, 6), "float32")},
    ),
]


@pytest.mark.parametrize(("message", "call", "arguments"), REFUSALS)
def test_refuses(message, call, arguments):
    with pytest.raises(ValueError, match=message):
        call(**arguments)


def test_refuses_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="'keras_transformer'.*'Transfer'"):
        keras_transformer.Transfer  # noqa: B018
