"""Residual connection with dropout and normalization (Sections 3.1, 5.4)."""

import keras

from keras_transformer.argument_checks import (
    check_choice,
    check_fraction,
    check_positive_number,
)
from keras_transformer.layers.composite_layer import CompositeLayer

NORM_ORDERS = ("post", "pre")
EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="keras_transformer")
class Residual(CompositeLayer):
    """ "Add & Norm": a residual connection, dropout and layer normalization.

    The caller runs the sub-layer between the two calls of this layer:

        post (as published)            pre
        y = sublayer(x)                y = sublayer(norm(x))
        x = norm(x + dropout(y))       x = x + dropout(y)

    In code, for both orders: `y = sublayer(residual.prepare(x))`, then
    `x = residual(x, y)`. Pre-norm trains without warm-up and with more layers;
    its stack needs one more normalization at its end, which `Encoder` and
    `Decoder` add.

    Args:
        dropout: Float in [0, 1), `P_drop` in the paper (0.1 in the base
            model), applied to the output of the sub-layer.
        norm: `"post"` or `"pre"`, where the normalization stands.
        norm_epsilon: Positive float, what it adds to a variance (1e-6, as in
            the authors' code; Keras's default is 1e-3).
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`, what entered the connection.
        outputs: Float tensor `(B, T, D)`, what the sub-layer made of it.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype.

    Masking:
        The mask of the output is that of `inputs`.

    Raises:
        ValueError: If `dropout` is not in [0, 1), or `norm` is another word.

    Example:
        >>> residual = Residual(dropout=0.1)
        >>> x = keras.ops.ones((2, 7, 512))
        >>> residual.build(x.shape, x.shape)
        >>> x = residual(x, keras.ops.tanh(residual.prepare(x)))
    """

    def __init__(self, dropout, norm="post", norm_epsilon=EPSILON, **kwargs):
        super().__init__(**kwargs)
        check_fraction("dropout", dropout)
        check_choice("norm", norm, NORM_ORDERS)
        check_positive_number("norm_epsilon", norm_epsilon)
        self.dropout = dropout
        self.norm = norm
        self.norm_epsilon = norm_epsilon

    def build(self, inputs_shape, outputs_shape=None):
        self.normalization = make_normalization(self, inputs_shape)
        self.output_dropout = self.make_sublayer(
            keras.layers.Dropout, self.dropout, name="output_dropout"
        )

    def prepare(self, inputs):
        """Returns what the sub-layer is to see of `inputs`."""
        return self.normalization(inputs) if self.norm == "pre" else inputs

    def call(self, inputs, outputs, training=None):
        outputs = inputs + self.output_dropout(outputs, training=training)
        return self.normalization(outputs) if self.norm == "post" else outputs

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm": self.norm,
            "norm_epsilon": self.norm_epsilon,
        }


def make_normalization(layer, input_shape):
    """Builds a layer normalization as `layer` has it."""
    normalization = layer.make_sublayer(
        keras.layers.LayerNormalization,
        epsilon=layer.norm_epsilon,
        name="normalization",
    )
    normalization.build(input_shape)
    return normalization
