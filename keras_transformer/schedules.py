"""The learning rate (Vaswani et al., 2017, Section 5.3)."""

import keras
from keras import ops

from keras_transformer.argument_checks import check_positive_int


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

    def __init__(self, hidden_dim, warmup_steps=4000, scale=1.0):
        check_positive_int("hidden_dim", hidden_dim)
        check_positive_int("warmup_steps", warmup_steps)
        if not isinstance(scale, (int, float)) or not scale > 0:
            raise ValueError(
                f"`scale` must be a positive number. Received: scale={scale!r}"
            )
        self.hidden_dim = hidden_dim
        self.warmup_steps = warmup_steps
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
