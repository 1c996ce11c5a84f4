"""Position-wise feed-forward network (Vaswani et al., 2017, Section 3.3)."""

from typing import Any

import keras

from keras_transformer.argument_checks import (
    check_fraction,
    check_known_width,
    check_positive_int,
)
from keras_transformer.layers.composite_layer import CompositeLayer


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(CompositeLayer):
    """Two linear maps with a ReLU between, the same at every position.

    Computes `max(0, x W1 + b1) W2 + b2` (Section 3.3, equation 2). Section 5.4
    drops out the output of each sub-layer, which `EncoderLayer` and
    `DecoderLayer` do, and nothing within.

    Args:
        intermediate_dim: Positive int. Features between the two maps, `d_ff`
            in the paper (2048 in the base model).
        activation: String or function, what stands between them: `"relu"` in
            the paper, or another that Keras knows.
        dropout: Float in [0, 1), the share of the inner features dropped in
            training.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor of shape `(B, T, D)`: batch, length, features.

    Returns:
        Float tensor of the shape of `inputs`, in the compute dtype.

    Masking:
        Positions do not see each other, so a mask passes through unchanged.

    Raises:
        ValueError: If `intermediate_dim` is not a positive int, if `dropout`
            is not in [0, 1), or if the last dimension of `inputs` is unknown
            when the layer is built.

    Example:
        >>> layer = keras_transformer.FeedForward(intermediate_dim=2048)
        >>> outputs = layer(keras.ops.ones((2, 7, 512)))
        >>> keras.ops.shape(outputs)
        (2, 7, 512)
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Any = "relu",
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_fraction("dropout", dropout)
        self.dropout = dropout
        self.intermediate_dim = check_positive_int("intermediate_dim", intermediate_dim)
        self.activation = keras.activations.get(activation)

    def build(self, input_shape):
        check_known_width("inputs", input_shape)
        self.expand = self.make_linear(
            "expand", self.intermediate_dim, input_shape, activation=self.activation
        )
        self.contract = self.make_linear(
            "contract", input_shape[-1], (*input_shape[:-1], self.intermediate_dim)
        )
        self.inner_dropout = self.make_sublayer(
            keras.layers.Dropout, self.dropout, name="inner_dropout"
        )

    def call(self, inputs):
        # Keras passes `training` to the dropout by itself: JAX's
        # rematerialization takes no Python bool as an argument of `call`.
        return self.contract(self.inner_dropout(self.expand(inputs)))

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
        }
