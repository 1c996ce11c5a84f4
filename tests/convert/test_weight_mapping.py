"""Tests of `convert.weight_mapping`."""

import math

import pytest

from convert.weight_mapping import count_weights, weights_of
from keras_transformer import Transformer


@pytest.mark.parametrize("mixer", ["attention", "ssru"])
def test_counts_the_weights_of_the_matrices_of_layers(mixer):
    sizes = {
        "num_layers": 3,
        "decoder_layers": 2,
        "hidden_dim": 10,
        "intermediate_dim": 14,
        "num_heads": 2,
        "key_dim": 3,
        "value_dim": 4,
    }
    model = Transformer.from_preset("base", 9, **sizes, decoder_mixer=mixer)

    shapes = [weight.shape for weight in weights_of(model).values()]
    expected = sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    assert count_weights(model.architecture) == expected
