"""Tests of the error messages of layers, losses and options."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.layers.residual import Residual

SIZES = {"num_heads": 2, "key_dim": 3, "value_dim": 4, "intermediate_dim": 5}
STACK = {"num_layers": 2, **SIZES}
MODEL = functools.partial(
    kt.Transformer.from_preset, "base", **STACK, vocabulary_size=9, hidden_dim=6
)
LEARNED = functools.partial(MODEL, positions="learned", sequence_length=9)
# A function that makes it, and an argument that must be a positive int.
POSITIVE_INTS = [
    (functools.partial(kt.MultiHeadAttention, 2, 3), "value_dim"),
    (functools.partial(kt.MultiHeadAttention, key_dim=3), "num_heads"),
    (functools.partial(kt.MultiHeadAttention, 2), "key_dim"),
    (functools.partial(kt.RestrictedSelfAttention, 2, 3), "radius"),
    (functools.partial(kt.TokenEmbedding, 9), "hidden_dim"),
    (functools.partial(kt.TokenEmbedding, hidden_dim=4), "vocabulary_size"),
    (kt.PositionEmbedding, "sequence_length"),
    (kt.FeedForward, "intermediate_dim"),
    (kt.TransformerSchedule, "hidden_dim"),
    (functools.partial(kt.TransformerSchedule, 6), "warmup_steps"),
    *(
        (functools.partial(stack, **STACK), name)
        for stack in (kt.Encoder, kt.Decoder)
        for name in STACK
    ),
    *((MODEL, name) for name in (*STACK, "vocabulary_size", "hidden_dim")),
    (MODEL, "sequence_length"),
    (functools.partial(MODEL, positions="learned"), "sequence_length"),
]
LAYERS = {kt.EncoderLayer: SIZES, kt.DecoderLayer: SIZES}
LAYERS |= {kt.Encoder: STACK, kt.Decoder: STACK}
RESIDUALS = [
    functools.partial(Residual, dropout=0.1),
    MODEL,
    *(functools.partial(layer, **sizes) for layer, sizes in LAYERS.items()),
]
UNKNOWN = (None, None, None)
KNOWN = (None, None, 6)
ATTENTION = functools.partial(kt.MultiHeadAttention, 2, 3)
SCHEDULE = functools.partial(kt.TransformerSchedule, 6)
DECAY = functools.partial(kt.WarmupDecay, peak=1, warmup_steps=5, steps=20)
PRETRAINED = kt.Transformer.from_pretrained
TOKENIZER = kt.SubwordTokenizer.from_pretrained
SAMPLING = functools.partial(kt.Sampling, seeds=[0])
GENERATE = functools.partial(MODEL(sequence_length=9).generate, [[5, 1]])
OF_TWO = functools.partial(kt.SearchOptions, np.int64(2))
IDS, STATES = np.ones((2, 5), "int32"), np.ones((2, 5, 6), "float32")
OF_RANK_2 = [
    *((layer, {"inputs": IDS}) for layer in (kt.SSRU(), kt.PositionEmbedding(9))),
    *(
        (layer(**LAYERS[layer]), {"inputs": IDS})
        for layer in (kt.EncoderLayer, kt.Encoder)
    ),
    (kt.DecoderLayer(**SIZES), {"target": IDS}),
    (kt.DecoderLayer(**SIZES), {"target": STATES, "memory": IDS}),
    (ATTENTION(), {"query": STATES, "value": IDS}),
]
NAN = float("nan")
NO_SHARES = (-0.1, 1.0, NAN, "0.1", None)
# What a message says, who says it, an argument, and values that are refused.
WRONG_VALUES = [
    (r"must be a number in \[0, 1\)", [*RESIDUALS, ATTENTION], "dropout", NO_SHARES),
    ("must be one of 'post', 'pre'.*norm=", RESIDUALS, "norm", ("Post", "", None)),
    ("must be a positive number", RESIDUALS, "norm_epsilon", (0, -1.0, None)),
    ("must be one of 'sine', 'learned'", [MODEL], "positions", ["rotary"]),
    ("positive", [kt.SinePositionEncoding], "max_wavelength", (0, -1.5, "10", None)),
    ("must be an int of 0", [kt.SinePositionEncoding], "offset", (-1, 1.0, None)),
    ("must be 0 with learned", [LEARNED], "position_offset", [2]),
    ("must be a positive number", [SCHEDULE], "scale", (0, -1.0, NAN, "1", None)),
    ("must be a positive number. Received: peak=0", [DECAY], "peak", [0]),
    ("warmup_steps=0", [DECAY], "warmup_steps", [0]),
    ("at least `warmup_steps`. Received: steps=4", [DECAY], "steps", [4]),
    ("'linear', 'cosine'. Received: decay='step'", [DECAY], "decay", ["step"]),
    (
        "but `num_layers` of `Arch",
        [functools.partial(kt.Transformer, 9)],
        "num_layers",
        [2],
    ),
    ("but `num_layers` of `Arch.*n_layers=2", [MODEL], "n_layers", [2]),
    ("but `bias.*, `num_heads`, .*d_k=2", [ATTENTION], "d_k", [2]),
    (
        "must be an `Arch.*from_preset",
        [functools.partial(kt.Transformer, 9)],
        "architecture",
        ["base"],
    ),
    (
        "no model.keras.*-m convert hugging-face",
        [PRETRAINED],
        "run_dir",
        ["an/opus-mt"],
    ),
    ("no tokenizer.model.*-m convert", [TOKENIZER], "run_dir", ["an/opus-mt"]),
    (r"in \[0, 1\)", [kt.SmoothedCrossentropy], "label_smoothing", NO_SHARES),
    # It would count padding.
    ("one of", [kt.SmoothedCrossentropy], "reduction", ["sum_over_batch_size"]),
    ("", [kt.SearchOptions], "beam_size", (0, -1, 2.5, np.int64(0))),
    ("", [OF_TWO], "num_hypotheses", (-1, 0, 3, 1.5, np.int64(3))),
    ("=0", [lambda **x: kt.SearchOptions(tf.constant(2), **x)], "num_hypotheses", [0]),
    ("must", [kt.SearchOptions], "no_repeat_ngram", (-1, 1.5)),
    ("must be", [kt.SearchOptions], "min_length", (-1, 1.5)),
    ("must be above 0. Received: ", [SAMPLING], "temperature", (0, -1.0)),
    ("must be 0 or more. Received: top_k=-1", [SAMPLING], "top_k", [-1]),
    ("must be above 0 and at most 1. Received", [SAMPLING], "top_p", (0.0, 1.5)),
    ("must be an int, 0 or more", [GENERATE], "max_extra_length", (-1, 2.5)),
]
REFUSALS = [
    *(
        (f"`{name}` must be .*{name}={value!r}", make, {name: value})
        for make, name in POSITIVE_INTS
        for value in (0, -1, 2.5, True)
    ),
    *(
        (f"`{name}`.*{message}", call, {name: value})
        for message, calls, name, values in WRONG_VALUES
        for call in calls
        for value in values
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
        for layer in (kt.DecoderLayer, kt.Decoder)
        for name in ("target", "memory")
    ),
    *(
        ("last dimension", layer.build, {"input_shape": UNKNOWN})
        for layer in (
            *(kt.FeedForward(8), kt.EncoderLayer(**SIZES), kt.Encoder(**STACK)),
            *(kt.PositionEmbedding(9), kt.SinePositionEncoding(), kt.SSRU()),
        )
    ),
    *(
        # Python would ask for the others first.
        ("no argument `heads`, but `num_heads`. Received: heads=4", layer, {"heads": 4})
        for layer in LAYERS
    ),
    *(
        (
            r"`\w+` must be of shape \(batch, length, features\).*\(2, 5\)",
            call,
            arguments,
        )
        for call, arguments in OF_RANK_2
    ),
    (
        "may have 4 positions at most",
        kt.PositionEmbedding(4),
        {"inputs": np.zeros((2, 5, 6), "float32")},
    ),
]


@pytest.mark.parametrize(("message", "call", "arguments"), REFUSALS)
def test_refuses(message, call, arguments):
    with pytest.raises(ValueError, match=message):
        call(**arguments)
