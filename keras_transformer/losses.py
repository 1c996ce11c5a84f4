"""Cross-entropy with label smoothing (Vaswani et al., 2017, Section 5.4)."""

import keras
from keras import ops

from keras_transformer.argument_checks import check_choice, check_fraction, check_labels
from keras_transformer.masks import token_weights


@keras.saving.register_keras_serializable(package="keras_transformer")
class SmoothedCrossentropy(keras.losses.Loss):
    """Cross-entropy against labels that are a little uncertain.

    Computes `-sum_v q(v) log p(v)` with `q = 1 - ε` for the label and
    `q = ε / (V - 1)` for each other token, as the authors' code does. (Keras's
    own `label_smoothing` spreads `ε / V` over all tokens, the label too.)
    Positions whose label is 0, padding, weigh nothing, and the mean runs over
    the others. (`metrics=["accuracy"]` counts them; `TokenAccuracy` does not.)
    All runs in float32, whatever `keras.config.floatx()` is: half
    precision would round the ids, which Keras casts like the logits.

    Args:
        label_smoothing: Float in [0, 1), `ε_ls` in the paper (0.1).
        reduction: `"mean_with_sample_weight"`, the mean over the real tokens
            of what a call sees; or `"sum"` or `"none"`. Under a
            `tf.distribute` strategy a mean is that of one replica, so sum and
            weigh with 1 / (tokens of the whole batch) there.
        name: String, the name of the loss.

    Call arguments:
        y_true: Int tensor of ids, of any shape, such as `(B, T)`.
        y_pred: Float tensor of logits, of that shape and a last axis `V`.
        sample_weight: Float tensor of the shape of `y_true`, or of its first
            axes (`(B,)`: a weight a sentence), or `None`.

    Returns:
        Float32 scalar; with `reduction="none"`, of the shape of `y_true`.

    Raises:
        ValueError: If `label_smoothing` is not in [0, 1), or if `reduction` is
            none of these three.

    Example:
        >>> loss = keras_transformer.SmoothedCrossentropy()
        >>> value = loss(np.array([[7, 5, 0]]), np.zeros((1, 3, 1000)))
        >>> float(value)  # log(1000)
        6.907755374908447
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        reduction: str = "mean_with_sample_weight",
        name: str = "smoothed_crossentropy",
    ):
        # Keras's other means would count the padding.
        check_choice("reduction", reduction, ("mean_with_sample_weight", "sum", "none"))
        super().__init__(name=name, reduction=reduction, dtype="float32")
        check_fraction("label_smoothing", label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_labels(y_true, y_pred)
        weights = token_weights(y_true, sample_weight)
        return super().__call__(y_true, y_pred, weights)

    def call(self, y_true, y_pred):
        logits = ops.cast(y_pred, "float32")
        labels = ops.cast(y_true, "int32")
        label_loss = ops.sparse_categorical_crossentropy(
            labels, logits, from_logits=True
        )
        mean_loss = -ops.mean(ops.log_softmax(logits), axis=-1)
        return smoothed_loss(
            label_loss, mean_loss, self.label_smoothing, logits.shape[-1]
        )

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def smoothed_loss(label_loss, mean_loss, label_smoothing, vocabulary_size):
    """Returns `-sum_v q(v) log p(v)` from two parts of the sum.

    Args:
        label_loss: Float tensor, `-log p(label)`.
        mean_loss: Float tensor, the mean of `-log p(v)` over all tokens `v`.
        label_smoothing: Float `ε`.
        vocabulary_size: Int `V`.
    """
    others = label_smoothing / (vocabulary_size - 1)
    # The mean counts the label too, so that share is taken off here.
    label = 1 - label_smoothing - others
    return label * label_loss + others * vocabulary_size * mean_loss
