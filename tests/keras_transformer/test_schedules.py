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


def test_the_paper_warms_up_for_4000_steps():
    schedule = TransformerSchedule(512)
    np.testing.assert_allclose(
        schedule(1999), equation_3(2000, 512, 4000), rtol=1e-5
    )


def test_rises_to_its_peak_and_falls():
    schedule = TransformerSchedule(hidden_dim=64, warmup_steps=20, scale=2.0)

    rates = np.array([float(schedule(step)) for step in range(100)])

    assert rates.argmax() == 19
    np.testing.assert_allclose(rates[19], 2.0 * (64 * 20) ** -0.5, rtol=1e-5)
    np.testing.assert_allclose(np.diff(rates[:20]), rates[0], rtol=1e-4)
    assert np.all(np.diff(rates[19:]) < 0)
    np.testing.assert_allclose(rates[79], rates[19] / 2, rtol=1e-5)


def test_the_peak_of_the_base_model():
    peak = float(TransformerSchedule(hidden_dim=512)(3999))
    assert round(peak * 1e4, 1) == 7.0


def test_drives_an_optimizer_in_a_graph():
    # Under a constant gradient, each update of Adam is the rate itself.
    schedule = TransformerSchedule(hidden_dim=16, warmup_steps=4)
    optimizer = keras.optimizers.Adam(schedule, 0.9, 0.98, 1e-9)
    variable = keras.Variable(0.0)
    optimizer.build([variable])
    update = tf.function(lambda: optimizer.apply([tf.constant(1.0)]))

    for step in range(1, 12):
        before = float(variable)
        np.testing.assert_allclose(
            optimizer.learning_rate, equation_3(step, 16, 4), rtol=1e-5
        )
        update()
        # float32 moments, divided by 1 - β^step, keep four digits.
        np.testing.assert_allclose(
            before - float(variable), equation_3(step, 16, 4), rtol=1e-4
        )
    assert optimizer.iterations.dtype == "int64"


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


def test_a_saved_model_goes_on_where_it_stopped(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    schedule = TransformerSchedule(hidden_dim=24, warmup_steps=9)
    model.compile(keras.optimizers.Adam(schedule), "mse")
    model.fit(np.ones((10, 2)), np.ones((10, 3)), batch_size=2, verbose=0)
    model.save(tmp_path / "model.keras")

    optimizer = keras.saving.load_model(tmp_path / "model.keras").optimizer

    assert int(optimizer.iterations) == 5
    np.testing.assert_allclose(
        optimizer.learning_rate, equation_3(6, 24, 9), rtol=1e-5
    )


@pytest.mark.parametrize("value", [0, -1, 2.5, "512", None, True])
@pytest.mark.parametrize("name", ["hidden_dim", "warmup_steps"])
def test_refuses_sizes_that_are_no_positive_ints(name, value):
    arguments = {"hidden_dim": 512, "warmup_steps": 4000, name: value}
    with pytest.raises(
        ValueError, match=f"`{name}` must be .*{name}={value!r}"
    ):
        TransformerSchedule(**arguments)


@pytest.mark.parametrize("scale", [0, 0.0, -1.0, np.nan, "1", None])
def test_refuses_a_scale_that_is_not_positive(scale):
    with pytest.raises(ValueError, match="`scale` must be a positive number"):
        TransformerSchedule(hidden_dim=512, scale=scale)
