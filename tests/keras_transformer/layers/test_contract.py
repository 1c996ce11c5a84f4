"""Each layer keeps the promises of `check_layer`; no two axes have a size in common."""

import pytest

from keras_transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionEmbedding,
    RestrictedSelfAttention,
    SinePositionEncoding,
    TokenEmbedding,
)
from keras_transformer.layers.residual import Residual
from keras_transformer.layers.ssru import SSRU
from tests.helpers.layer_checks import check_layer
from tests.helpers.oracles.numpy_oracles import random_array

B, T, S, D = 3, 5, 6, 8
HEADS = {"num_heads": 2, "key_dim": 7, "value_dim": 4, "dropout": 0.1}
SIZES = {**HEADS, "intermediate_dim": 16, "norm": "pre"}
# Without biases, for that of the keys moves no output and so never learns.
ATTENTION = {**HEADS, "use_bias": False}
INPUTS = {"inputs": random_array(B, T, D)}
OF_DECODERS = {"target": random_array(B, T, D), "memory": random_array(B, S, 9)}


@pytest.mark.parametrize(
    ("cls", "init_kwargs", "inputs", "num_weights"),
    [
        (
            MultiHeadAttention,
            ATTENTION,
            {"query": random_array(B, T, D), "value": random_array(B, S, 11)}
            | {"key": random_array(B, S, 9)},
            4,
        ),
        (RestrictedSelfAttention, {**ATTENTION, "radius": 2}, INPUTS, 4),
        (FeedForward, {"intermediate_dim": 16}, INPUTS, 4),
        # Post-norm: in pre-norm order only `prepare` uses the weights.
        (
            Residual,
            {"dropout": 0.1, "norm": "post"},
            {**INPUTS, "outputs": random_array(B, T, D, seed=1)},
            2,
        ),
        (EncoderLayer, SIZES, INPUTS, 4 + 4 + 2 * 2),
        (Encoder, {**SIZES, "num_layers": 2}, INPUTS, 2 * 12 + 2),
        (DecoderLayer, SIZES, OF_DECODERS, 2 * 4 + 4 + 3 * 2),
        (Decoder, {**SIZES, "num_layers": 1}, OF_DECODERS, 18 + 2),
        (SSRU, {"name": "recurrence"}, INPUTS, 3),
        (
            TokenEmbedding,
            {"vocabulary_size": 11, "hidden_dim": D},
            {"inputs": random_array(B, T).argsort()},
            1,
        ),
        (SinePositionEncoding, {"max_wavelength": 500, "offset": 2}, INPUTS, 0),
        (PositionEmbedding, {"sequence_length": 9}, INPUTS, 1),
    ],
)
def test_keeps_the_promises_of_a_layer(tmp_path, cls, init_kwargs, inputs, num_weights):
    check_layer(cls, init_kwargs, inputs, (B, T, D), num_weights, tmp_path)
