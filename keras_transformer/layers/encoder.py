"""The encoder (Vaswani et al., 2017, Section 3.1, left of Figure 1)."""

import keras

from keras_transformer.argument_checks import check_positive_int, check_sequence_shape
from keras_transformer.layers.composite_layer import LayerOutput
from keras_transformer.layers.encoder_decoder_base import BaseLayer
from keras_transformer.layers.residual import make_normalization


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderLayer(BaseLayer):
    """Self-attention and a feed-forward network, each with "Add & Norm".

    Args:
        num_heads: Positive int, `h` in the paper (8 in the base model).
        intermediate_dim: Positive int, inner features of the feed-forward
            network, `d_ff` (2048).
        key_dim: Positive int, features of a head's queries and keys, `d_k`
            (64). `None` means the width divided by `num_heads`.
        value_dim: Positive int, features of a head's values, `d_v` (64).
            `None` means `key_dim`.
        dropout: Float in [0, 1), `P_drop` (0.1), applied to the output of
            each sub-layer (Section 5.4).
        norm: `"post"`, as published, or `"pre"`; see `Residual`.
        use_bias: Bool, whether the maps of attention add a bias. The paper's
            do not.
        activation: String or function, of the feed-forward network
            (`"relu"`).
        norm_epsilon: Positive float, of layer normalization (1e-6).
        attention_dropout: Float in [0, 1), of attention weights (0).
        feed_forward_dropout: Float in [0, 1), of the inner features of the
            feed-forward network (0).
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(B, S, D)`.
        mask: Bool tensor `(B, S)`, False where a position is padding; or
            `(B, S, S)`, the positions that each one may attend to.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, S, D)` in the compute dtype. With
        `return_attention_scores`, a tuple with the attention weights after it,
        `(B, H, S, S)`.

    Masking:
        No position attends to one that `mask` excludes. The mask passes on.

    Raises:
        ValueError: If an argument is out of its range, or the last dimension
            of `inputs` is unknown when the layer is built.

    Example:
        >>> layer = keras_transformer.EncoderLayer(num_heads=8, intermediate_dim=2048)
        >>> keras.ops.shape(layer(keras.ops.ones((2, 7, 512))))
        (2, 7, 512)
    """

    def build(self, input_shape):
        check_sequence_shape("inputs", input_shape)
        self.attention = self.make_attention("attention", input_shape, input_shape)
        self.attention_residual = self.make_residual("attention_residual", input_shape)
        self.build_feed_forward(input_shape)

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        y = self.attention_residual.prepare(inputs)
        y, scores, _ = self.attention.run(
            y,
            y,
            value_mask=mask,
            return_attention_scores=return_attention_scores,
            training=training,
        )
        x = self.attention_residual(inputs, y, training=training)
        x = self.apply_feed_forward(x, training)
        return LayerOutput(x, scores).select(return_attention_scores, False)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(BaseLayer):
    """A stack of equal encoder layers (Section 3.1).

    With `norm="pre"` the stack ends in one more layer normalization.

    Args:
        num_layers: Positive int, `N` in the paper (6).
        num_heads: Positive int, `h` (8 in the base model).
        intermediate_dim: Positive int, `d_ff` (2048).
        **kwargs: The other arguments of `EncoderLayer`.

    Call arguments:
        inputs: Float tensor `(B, S, D)`: embeddings with their positions.
        mask: As of `EncoderLayer`.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, S, D)` in the compute dtype, `z` in the paper. With
        `return_attention_scores`, a tuple with the attention weights of each
        layer after it.

    Masking and errors are those of `EncoderLayer`.

    Example:
        >>> encoder = keras_transformer.Encoder(
        ...     num_layers=6, num_heads=8, intermediate_dim=2048
        ... )
        >>> inputs = keras.ops.ones((2, 7, 512))
        >>> keras.ops.shape(encoder(inputs))
        (2, 7, 512)
        >>> _, scores = encoder(inputs, return_attention_scores=True)
        >>> keras.ops.shape(scores[5])  # The last layer's.
        (2, 8, 7, 7)
    """

    def __init__(
        self, num_layers: int, num_heads: int, intermediate_dim: int, **kwargs
    ):
        super().__init__(num_heads, intermediate_dim, **kwargs)
        self.num_layers = check_positive_int("num_layers", num_layers)
        self.layers = [
            self.make_sublayer(
                EncoderLayer, **self.hyperparameters(), name=f"layer_{index}"
            )
            for index in range(self.num_layers)
        ]

    def build(self, input_shape):
        for layer in self.layers:
            layer.build(input_shape)
        if self.norm == "pre":
            self.normalization = make_normalization(self, input_shape)

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        x = inputs
        scores = []
        for layer in self.layers:
            x, layer_scores, _ = layer.run(
                x,
                mask=mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            scores.append(layer_scores)
        if self.norm == "pre":
            x = self.normalization(x)
        return LayerOutput(x, tuple(scores)).select(return_attention_scores, False)

    def get_config(self):
        return {**super().get_config(), "num_layers": self.num_layers}
