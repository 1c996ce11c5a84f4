"""Tests of the dropouts that Section 5.4 does not have."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import FeedForward, Transformer
from keras_transformer.presets import PRESETS

RATES = ("attention_dropout", "feed_forward_dropout")
IDS = np.array([[7, 5, 9, 1], [8, 6, 1, 0]])
INPUTS = {"source_ids": IDS, "target_ids": IDS}


def make_model(**rates):
    keras.utils.set_random_seed(1)
    preset = PRESETS["tiny"].replace(
        num_layers=2, hidden_dim=16, intermediate_dim=24, dropout=0.0, **rates
    )
    return Transformer.from_preset(preset, 12, num_heads=2)


@pytest.mark.parametrize("name", RATES)
def test_drops_in_training_only(name):
    plain, model = make_model(), make_model(**{name: 0.5})
    twin = Transformer.from_config(model.get_config())
    for each in (model, twin):
        each.set_weights(plain.get_weights())
    expected = plain(INPUTS)

    np.testing.assert_allclose(model(INPUTS), expected, atol=1e-6)
    np.testing.assert_array_equal(plain(INPUTS, training=True), expected)
    for each in (model, twin):
        found = [np.array(each(INPUTS, training=True)) for _ in range(4)]
        assert max(np.abs(found[0] - x).max() for x in found) > 1e-3
    with pytest.raises(ValueError, match=rf"`{name}` must .* {name}=1.5"):
        make_model(**{name: 1.5})


def test_inner_features_are_dropped_at_the_rate_and_scaled():
    layer = FeedForward(5_000, "linear", dropout=0.3)
    layer.build((None, None, 4))
    layer.expand.kernel.assign(ops.zeros((4, 5_000)))
    layer.expand.bias.assign(ops.ones(5_000))
    layer.contract.kernel.assign(ops.ones((5_000, 4)))

    sums = np.array(layer(ops.ones((8, 8, 4)), training=True))

    counts = sums[..., 0] * 0.7
    # The deviation of a count of 5,000 draws is 32.
    np.testing.assert_allclose(counts, 3_500, atol=200)
    assert counts.std() == pytest.approx(32, abs=12)
