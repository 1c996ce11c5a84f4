"""The paper's Adam, which sums and checks gradients of replicas (Section 5.3)."""

import keras
import tensorflow as tf

FIRST_LOSS_SCALE = 2.0**15
STEPS_UNTIL_GROWTH = 2_000


class DistributedAdam(keras.optimizers.Adam):
    """The paper's Adam, updated by one operation for each variable.

    Keras clips the gradient of each replica before it sums them. This class sums
    first. An update whose gradient is not finite leaves weights and moments as
    they are, and counts in `skipped` and `skipped_in_a_row`. `iterations`, by which
    an optimizer corrects its moments and schedules its rate, counts the others, as
    with Keras's `LossScaleOptimizer`; `updates`, the position in the corpus, all.

    Args:
        learning_rate: Float or `LearningRateSchedule`.
        clip_norm: Positive float, maximum norm of the whole gradient, or `None`
            for no clipping, as in the paper.
        scale_loss: Bool, whether to use dynamic loss scaling, as float16
            needs.
    """

    def __init__(self, learning_rate, clip_norm=None, scale_loss=False):
        super().__init__(
            learning_rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9, name="adam"
        )
        self._clip_norm = clip_norm
        self._scales_loss = scale_loss

    def build(self, variables):
        super().build(variables)
        self.skipped = self._add_number("skipped", "int64")
        self.skipped_in_a_row = self._add_number("skipped_in_a_row", "int64")
        if self._scales_loss:
            self.loss_scale = self._add_number(
                "loss_scale", "float32", FIRST_LOSS_SCALE
            )
            self._good_in_a_row = self._add_number("good_in_a_row", "int64")

    @property
    def updates(self):
        """Int64 scalar, the number of updates, skipped ones included."""
        return self.iterations.value + self.skipped.value

    def _add_number(self, name, dtype, value=0):
        return self.add_variable(
            shape=(),
            dtype=dtype,
            initializer=keras.initializers.Constant(value),
            aggregation="only_first_replica",
            name=name,
        )

    def scale_loss(self, loss):
        """Returns the loss to differentiate."""
        return loss * self.loss_scale if self._scales_loss else loss

    def apply(self, gradients, variables):
        """Applies one update.

        Args:
            gradients: Dense float32 tensors, this replica's part of each
                variable's gradient, of the loss that `scale_loss` returned.
            variables: The Keras variables that the optimizer was built on.

        Returns:
            Float32 scalar, the norm of the whole gradient before clipping;
            not finite if the update was skipped.
        """
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce("SUM", gradients)
        factor = tf.constant(1.0)
        if self._scales_loss:
            factor /= self.loss_scale.value
        norm = tf.linalg.global_norm(gradients) * factor
        finite = tf.math.is_finite(norm)
        if self._clip_norm is not None:
            factor *= tf.minimum(1.0, self._clip_norm / norm)
        step = tf.cast(self.iterations.value + 1, tf.float32)
        numbers = {
            "beta1_power": tf.pow(self.beta_1, step),
            "beta2_power": tf.pow(self.beta_2, step),
            # With these and a zero gradient, the weights do not change.
            "lr": tf.where(finite, self.learning_rate, 0.0),
            "beta1": tf.where(finite, self.beta_1, 1.0),
            "beta2": tf.where(finite, self.beta_2, 1.0),
        }
        factor = tf.where(finite, factor, 0.0)
        context.merge_call(
            self._update_all,
            args=(gradients, [v.value for v in variables]),
            kwargs={"factor": factor, "numbers": numbers},
        )
        self.iterations.assign_add(tf.cast(finite, tf.int64))
        self._count(finite)
        return norm

    def _update_all(self, strategy, gradients, variables, **kwargs):
        for i, variable in enumerate(variables):
            strategy.extended.update(
                variable,
                self._update_one,
                args=(i, gradients[i]),
                kwargs=kwargs,
                group=False,
            )

    def _update_one(self, variable, i, gradient, factor, numbers):
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[i].value.handle,
            v=self._velocities[i].value.handle,
            # A zero factor times an infinite gradient would be NaN.
            grad=tf.math.multiply_no_nan(gradient, factor),
            epsilon=self.epsilon,
            **numbers,
        )

    def _count(self, finite):
        good = tf.cast(finite, tf.int64)
        self.skipped.assign_add(1 - good)
        self.skipped_in_a_row.assign((self.skipped_in_a_row.value + 1) * (1 - good))
        if not self._scales_loss:
            return
        in_a_row = (self._good_in_a_row.value + 1) * good
        grows = tf.equal(in_a_row, STEPS_UNTIL_GROWTH)
        change = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.loss_scale.assign(self.loss_scale.value * change)
        self._good_in_a_row.assign(tf.where(grows, tf.zeros_like(good), in_a_row))
