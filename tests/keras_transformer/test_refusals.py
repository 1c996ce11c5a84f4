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


def cases(message, calls, name, values, **others):
    """Returns a case for each call and value of the argument `name`."""
    return [
        (message, call, {**others, name: value}) for call in calls for value in values
    ]


REFUSALS = [
    *(
        (f"`{name}` must be .*{name}={value!r}", make, {name: value})
        for make, name in POSITIVE_INTS
        for value in (0, -1, 2.5, True)
    ),
    *cases(
        r"`dropout` must be a number in \[0, 1\)",
        [*RESIDUALS, ATTENTION],
        "dropout",
        (-0.1, 1.0, float("nan"), "0.1", None),
    ),
    *cases(
        "`norm` must be one of 'post', 'pre'.*norm=",
        RESIDUALS,
        "norm",
        ("Post", "", None),
        dropout=0.1,
    ),
    *cases(
        "`norm_epsilon` must be a positive number",
        RESIDUALS,
        "norm_epsilon",
        (0, -1.0, None),
        dropout=0.1,
    ),
    *cases(
        "`positions` must be one of 'sine', 'learned'", [MODEL], "positions", ["rotary"]
    ),
    *cases(
        "`max_wavelength` must be a positive",
        [SinePositionEncoding],
        "max_wavelength",
        (0, -1.5, "10", None),
    ),
    *cases(
        "`offset` must be an int of 0",
        [SinePositionEncoding],
        "offset",
        (-1, 1.0, None),
    ),
    *cases(
        "`scale` must be a positive number",
        [TransformerSchedule],
        "scale",
        (0, -1.0, np.nan, "1", None),
        hidden_dim=6,
    ),
    *cases(
        r"`label_smoothing` .* in \[0, 1\)",
        [SmoothedCrossentropy],
        "label_smoothing",
        (-0.1, 1.0, "0.1", None, np.nan),
    ),
    # It would count padding.
    *cases(
        "`reduction` must be one of",
        [SmoothedCrossentropy],
        "reduction",
        ["sum_over_batch_size"],
    ),
    *cases("`beam_size`", [SearchOptions], "beam_size", (0, -1, 2.5, np.int64(0))),
    *cases(
        "`num_hypotheses`",
        [SearchOptions],
        "num_hypotheses",
        (-1, 0, 3, 1.5),
        beam_size=2,
    ),
    *cases(
        "`num_hypotheses`.*=0",
        [SearchOptions],
        "num_hypotheses",
        [0],
        beam_size=tf.constant(2),
    ),
    *cases("`no_repeat_ngram` must", [SearchOptions], "no_repeat_ngram", (-1, 1.5)),
    *cases("`min_length` must be", [SearchOptions], "min_length", (-1, 1.5)),
    *cases(
        "`max_extra_length` must be an int, 0 or more",
        [functools.partial(MODEL(sequence_length=9).generate, [[5, 1]])],
        "max_extra_length",
        (-1, 2.5),
    ),
    *(
        (
            f"last dimension of `{unknown}`",
            ATTENTION().build,
            {f"{x}_shape": UNKNOWN if x == unknown else KNOWN for x in names},
        )
        for names in [("query", "value", "key")]
        for unknown in names
    ),
    *(
        (
            f"last dimension of `{name}`",
            layer(**LAYERS[layer]).build,
            {"target_shape": KNOWN, "memory_shape": KNOWN, f"{name}_shape": UNKNOWN},
        )
        for layer in (DecoderLayer, Decoder)
        for name in ("target", "memory")
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
