"""The learning rate (Vaswani et al., 2017, Section 5.3)."""

import keras
import numpy as np
from keras import ops

from keras_transformer.argument_checks import (
    check_choice,
    check_positive_int,
    check_positive_number,
)


@keras.saving.register_keras_serializable(package="keras_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A linear rise, then a fall with the inverse square root of the step.

    Computes `scale * d_model^-0.5 * min(s^-0.5, s * warmup_steps^-1.5)`
    (Section 5.3, equation 3). The paper's step `s` counts from 1 and
    `optimizer.iterations` from 0, so `s = step + 1`. The peak, at
    `s = warmup_steps`, is `scale * (d_model * warmup_steps)^-0.5`: 7.0e-4 for
    the base model.

    Args:
        hidden_dim: Positive int, `d_model`.
        warmup_steps: Positive int, in optimizer steps (4000 in the paper).
        scale: Positive number that multiplies the rate (1 in the paper).

    Call arguments:
        step: Int scalar, updates made so far.

    Returns:
        Float32 scalar, the learning rate of the next update.

    Raises:
        ValueError: If `hidden_dim` or `warmup_steps` is not a positive int, or
            `scale` is not positive.

    Example:
        >>> schedule = keras_transformer.TransformerSchedule(hidden_dim=512)
        >>> optimizer = keras.optimizers.Adam(schedule, 0.9, 0.98, 1e-9)
    """

    def __init__(self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0):
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.warmup_steps = check_positive_int("warmup_steps", warmup_steps)
        check_positive_number("scale", scale)
        self.scale = scale

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0
        rise = step * self.warmup_steps**-1.5
        rate = ops.minimum(ops.rsqrt(step), rise)
        return self.scale * self.hidden_dim**-0.5 * rate

    def get_config(self):
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A linear rise to a peak, then a constant rate or a fall to 0.

    With the step `s`, which counts from 1 like that of `TransformerSchedule`,
    the rate is `peak * min(s / warmup_steps, f(t))`, where `t` rises from 0 at
    `s = warmup_steps` to 1 at `s = steps + 1`, after the last update; `f(t)` is
    1, `1 - t` or `(1 + cos(π t)) / 2`. The paper has no such schedule.

    Args:
        peak: Positive number, the highest rate.
        warmup_steps: Positive int, in optimizer steps.
        steps: Int, at least `warmup_steps`, optimizer steps in all.
        decay: `"constant"`, `"linear"` or `"cosine"`.

    Call arguments:
        step: Int scalar, updates made so far.

    Returns:
        Float32 scalar, the learning rate of the next update.

    Raises:
        ValueError: If an argument is out of its range.

    Example:
        >>> schedule = keras_transformer.WarmupDecay(5e-4, 4000, 60_000)
        >>> optimizer = keras.optimizers.AdamW(schedule, 1e-4)
    """

    def __init__(
        self, peak: float, warmup_steps: int, steps: int, decay: str = "linear"
    ):
        self.warmup_steps = check_positive_int("warmup_steps", warmup_steps)
        self.steps = check_positive_int("steps", steps)
        check_positive_number("peak", peak)
        check_choice("decay", decay, DECAYS)
        if steps < warmup_steps:
            raise ValueError(
                "`steps` must be at least `warmup_steps`. "
                f"Received: steps={steps}, warmup_steps={warmup_steps}"
            )
        self.peak = peak
        self.decay = decay

    def __call__(self, step):
        step = 1.0 + ops.cast(step, "float32")
        share = (step - self.warmup_steps) / (self.steps + 1 - self.warmup_steps)
        fall = DECAYS[self.decay](ops.clip(share, 0.0, 1.0))
        return self.peak * ops.minimum(step / self.warmup_steps, fall)

    def get_config(self):
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "steps": self.steps,
            "decay": self.decay,
        }


# From the share of the fall that is past to the share of the peak.
DECAYS = {
    "constant": ops.ones_like,
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: (1.0 + ops.cos(np.pi * share)) / 2.0,
}
