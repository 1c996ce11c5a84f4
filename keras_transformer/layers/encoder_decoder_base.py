"""Base class of encoder and decoder layers and stacks (Section 3.1)."""

from typing import Any

import keras

from keras_transformer.argument_checks import (
    check_choice,
    check_fraction,
    check_optional_positive_int,
    check_positive_int,
    check_positive_number,
)
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.composite_layer import CompositeLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.residual import EPSILON, NORM_ORDERS, Residual

HYPERPARAMETERS = (
    *("num_heads", "intermediate_dim", "key_dim", "value_dim", "dropout"),
    *("norm", "use_bias", "activation", "norm_epsilon"),
    *("attention_dropout", "feed_forward_dropout"),
)
DROPOUTS = tuple(n for n in HYPERPARAMETERS if n.endswith("dropout"))


class BaseLayer(CompositeLayer):
    """Base class of encoder and decoder layers, and of stacks of them.

    It stores their hyperparameters and creates their sub-layers. Its arguments
    are those of `EncoderLayer`.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.1,
        norm: str = "post",
        use_bias: bool = False,
        activation: Any = "relu",
        norm_epsilon: float = EPSILON,
        attention_dropout: float = 0.0,
        feed_forward_dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.feed_forward_dropout = feed_forward_dropout
        for name in DROPOUTS:
            check_fraction(name, getattr(self, name))
        check_choice("norm", norm, NORM_ORDERS)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.intermediate_dim = check_positive_int("intermediate_dim", intermediate_dim)
        self.key_dim = check_optional_positive_int("key_dim", key_dim)
        self.value_dim = check_optional_positive_int("value_dim", value_dim)
        self.norm = norm
        self.use_bias = use_bias
        self.activation = keras.activations.get(activation)
        check_positive_number("norm_epsilon", norm_epsilon)
        self.norm_epsilon = norm_epsilon

    def hyperparameters(self):
        """Returns the arguments that a stack passes to its layers."""
        return {name: getattr(self, name) for name in HYPERPARAMETERS}

    def make_attention(self, name, query_shape, value_shape):
        width, heads = query_shape[-1], self.num_heads
        if self.key_dim is None and width % heads:
            raise ValueError(
                "`key_dim` must be given where `num_heads` does not divide the "
                f"width. Received: num_heads={heads}, width {width}"
            )
        attention = self.make_sublayer(
            MultiHeadAttention,
            heads,
            self.key_dim or width // heads,
            self.value_dim,
            self.attention_dropout,
            use_bias=self.use_bias,
            name=name,
        )
        attention.build(query_shape, value_shape)
        return attention

    def make_residual(self, name, shape):
        residual = self.make_sublayer(
            Residual, self.dropout, self.norm, self.norm_epsilon, name=name
        )
        residual.build(shape)
        return residual

    def build_feed_forward(self, shape):
        """Builds the last sub-layer."""
        self.feed_forward = self.make_sublayer(
            FeedForward,
            self.intermediate_dim,
            self.activation,
            self.feed_forward_dropout,
            name="feed_forward",
        )
        self.feed_forward.build(shape)
        self.feed_forward_residual = self.make_residual("feed_forward_residual", shape)

    def apply_feed_forward(self, x, training):
        """Computes the last sub-layer."""
        y = self.feed_forward(self.feed_forward_residual.prepare(x))
        return self.feed_forward_residual(x, y, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            **self.hyperparameters(),
            "activation": keras.activations.serialize(self.activation),
        }
