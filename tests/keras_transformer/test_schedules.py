import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import TransformerSchedule, WarmupDecay


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
    twin = TransformerSchedule.from_config(schedule.get_config())
    steps = {0, 1, 2, 5, 6, 7, 8, 100, 3998, 3999, 4000, 4001, 99_999, 10**6}

    for step in steps:
        rate = schedule(tf.constant(step, tf.int64))
        assert rate.dtype == tf.float32
        assert rate.shape == ()
        # Step 0 of the optimizer is step 1 of the paper.
        expected = equation_3(step + 1, hidden_dim, warmup_steps, scale)
        np.testing.assert_allclose(rate, expected, rtol=1e-5)
        np.testing.assert_allclose(twin(step), expected, rtol=1e-5)


FALLS = {
    "constant": lambda share: 1,
    "linear": lambda share: 1 - share,
    "cosine": lambda share: 0.5 + 0.5 * np.cos(np.pi * share),
}


@pytest.mark.parametrize("decay", FALLS)
def test_falls_from_the_peak_to_zero_behind_the_last_step(decay):
    schedule = WarmupDecay(3e-4, 5, 20, decay)
    twin = WarmupDecay.from_config(schedule.get_config())

    # In the paper's count, from 1.
    rates = [3e-4 * step / 5 for step in range(1, 5)]
    rates += [3e-4 * FALLS[decay](min(1, (step - 5) / 16)) for step in range(5, 25)]
    found = [float(schedule(tf.constant(s, tf.int64))) for s in range(24)]
    np.testing.assert_allclose(found, rates, rtol=1e-5, atol=1e-10)
    assert found[19] > 0
    assert [float(twin(step)) for step in range(24)] == found
