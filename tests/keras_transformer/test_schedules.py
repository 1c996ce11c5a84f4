"""Tests of `keras_transformer.schedules`."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import TransformerSchedule


def equation_3(step, hidden_dim, warmup_steps, scale=1.0):
    """The rate of the paper's step, which counts from 1."""
    rise, fall = step * warmup_steps**-1.5, step**-0.5
    return scale * hidden_dim**-0.5 * min(rise, fall)


@pytest.mark.parametrize(
    ("hidden_dim", "warmup_steps", "scale"),
    [(512, 4000, 1.0), (128, 7, 0.5), (1024, 1, 3)],
)
def test_equals_equation_3(hidden_dim, warmup_steps, scale):
    schedule = TransformerSchedule(hidden_dim, warmup_steps, scale)
    steps = {0, 1, 2, 5, 6, 7, 8, 100, 3998, 3999, 4000, 4001, 99_999, 10**6}

    for step in steps:
        rate = schedule(tf.constant(step, tf.int64))
        assert rate.dtype == tf.float32
        assert rate.shape == ()
        # Step 0 of the optimizer is step 1 of the paper.
        expected = equation_3(step + 1, hidden_dim, warmup_steps, scale)
        np.testing.assert_allclose(rate, expected, rtol=1e-5)
        np.testing.assert_allclose(schedule(step), expected, rtol=1e-5)


def test_comes_back_from_the_config_of_an_optimizer():
    optimizer = keras.optimizers.Adam(TransformerSchedule(24, 9, scale=0.75))

    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    twin = keras.optimizers.deserialize(config)

    schedule = twin.get_config()["learning_rate"]
    assert (
        schedule["registered_name"] == "keras_transformer>TransformerSchedule"
    )
    assert schedule["config"] == {
        "hidden_dim": 24,
        "warmup_steps": 9,
        "scale": 0.75,
    }
    np.testing.assert_allclose(
        twin.learning_rate, equation_3(1, 24, 9, 0.75), rtol=1e-5
    )
