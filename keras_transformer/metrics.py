"""Accuracy and perplexity over real tokens (Section 5.4, Table 3)."""

import keras
from keras import ops

from keras_transformer.argument_checks import check_labels
from keras_transformer.masks import token_weights


class TokenMean(keras.metrics.Metric):
    """Base class of means over all tokens except padding."""

    def __init__(self, name, **kwargs):
        super().__init__(name=name, **kwargs)
        # A sum in half precision would stagnate after a few hundred tokens.
        zero = {"shape": (), "initializer": "zeros", "dtype": "float32"}
        self.total = self.add_variable(**zero, name="total")
        self.count = self.add_variable(**zero, name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        check_labels(y_true, y_pred)
        weights = token_weights(y_true, sample_weight)
        values = self.token_values(ops.cast(y_true, "int32"), y_pred)
        self.total.assign_add(ops.sum(values * weights))
        self.count.assign_add(ops.sum(weights))

    def token_values(self, y_true, y_pred):
        """Returns a float32 value for each token of `y_true`."""
        raise NotImplementedError

    def result(self):
        return ops.divide_no_nan(self.total, self.count)


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenAccuracy(TokenMean):
    """Share of tokens to which the model gives its highest probability.

    Positions whose label is 0, padding, do not count. Give it to `compile` as
    one of `metrics`, not of `weighted_metrics`.

    Args:
        name: String, `"accuracy"` by default.
        **kwargs: Arguments of `keras.metrics.Metric`.

    Call arguments:
        y_true: Int tensor of ids, of any shape, such as `(B, T)`.
        y_pred: Float tensor of logits, of that shape and a last axis `V`.
        sample_weight: Float tensor of the shape of `y_true`, or of its first
            axes (`(B,)`: a weight a sentence), or `None`.

    Returns:
        Float32 scalar in [0, 1]; 0 before any token.

    Example:
        >>> metric = keras_transformer.TokenAccuracy()
        >>> metric.update_state([[1, 2, 0]], np.eye(3)[None, [1, 1, 1]])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def token_values(self, y_true, y_pred):
        best = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        return ops.cast(ops.equal(best, y_true), "float32")


@keras.saving.register_keras_serializable(package="keras_transformer")
class Perplexity(TokenMean):
    """Exponential of the mean negative log-likelihood of a token.

    Computes `exp(-mean(log p(label)))` without label smoothing, which is part
    of the loss only, as in Table 3. Padding does not count. The call arguments
    are those of `TokenAccuracy`, and so is the use in `compile`.

    Args:
        name: String, `"perplexity"` by default.
        **kwargs: Arguments of `keras.metrics.Metric`.

    Returns:
        Float32 scalar, at least 1.

    Example:
        >>> metric = keras_transformer.Perplexity()
        >>> metric.update_state([[7, 5, 0]], np.zeros((1, 3, 1000)))
        >>> round(float(metric.result()))
        1000
    """

    def __init__(self, name: str = "perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def token_values(self, y_true, y_pred):
        logits = ops.cast(y_pred, "float32")
        return ops.sparse_categorical_crossentropy(y_true, logits, from_logits=True)

    def result(self):
        return ops.exp(super().result())
