"""Self-attention to a neighborhood (Vaswani et al., 2017, Section 4)."""

import keras
import numpy as np
from keras import ops

from keras_transformer.argument_checks import check_positive_int, check_rank_3
from keras_transformer.layers.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)


@keras.saving.register_keras_serializable(package="keras_transformer")
class RestrictedSelfAttention(MultiHeadAttention):
    """Self-attention in which a position sees only those near it.

    What `MultiHeadAttention` computes with the mask `|i - j| <= radius`: the
    neighborhood of the paper's Table 1 has `r = 2 radius + 1` positions. Its
    time and memory grow with the length as `O(r n d)`, not `O(n² d)`; beside
    it are the linear maps of any attention, `O(n d²)`.

    The sequence is cut into blocks of `radius` positions. Whatever a block may
    see lies in itself, the one before and the one after it, so `3 radius` keys
    (`2 radius` with a causal mask) are compared with each query, and what is
    too far is masked.

    Args:
        num_heads: Positive int, `h`.
        key_dim: Positive int, features of a head's queries and keys, `d_k`.
        radius: Positive int, how many positions a position sees on each side.
        **kwargs: The other arguments of `MultiHeadAttention`, such as
            `value_dim` or `dropout`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Bool tensor `(B, T)`, False where a position is padding. Keras
            fills it.
        use_causal_mask: Bool, whether no position sees later ones.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype.

    Masking:
        No query attends to padding, and the mask passes on.

    Raises:
        ValueError: If an argument is out of its range, or if the last
            dimension is unknown when the layer is built.

    Example:
        >>> layer = keras_transformer.RestrictedSelfAttention(
        ...     num_heads=8, key_dim=64, radius=16
        ... )
        >>> keras.ops.shape(layer(keras.ops.ones((2, 1000, 512))))
        (2, 1000, 512)
    """

    def __init__(self, num_heads: int, key_dim: int, radius: int, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.radius = check_positive_int("radius", radius)

    def build(self, inputs_shape):
        super().build(inputs_shape, inputs_shape)

    def call(self, inputs, mask=None, use_causal_mask=False, training=None):
        check_rank_3(inputs=inputs)
        batch, length = ops.shape(inputs)[:2]
        after = 0 if use_causal_mask else 1
        # A block of more than the whole would be padding.
        size = min(self.radius, inputs.shape[1] or self.radius)
        queries = self._blocks(self.query_projection(inputs), size, 0, 0)
        keys = self._blocks(self.key_projection(inputs), size, 1, after)
        values = self._blocks(self.value_projection(inputs), size, 1, after)
        if mask is None:
            mask = ops.ones((batch, length))
        # Beyond the ends there are zeros, so nothing to see.
        real = ops.cast(mask, "int32")[:, :, None]
        real = self._blocks(real, size, 1, after)
        visible = ops.logical_and(
            ops.not_equal(real, 0)[:, None, None, :, 0], self._near_mask(size, after)
        )  # (B n, 1, s, 2 s or 3 s)
        outputs, _ = scaled_dot_product_attention(
            self._split_heads(queries),
            self._split_heads(keys),
            self._split_heads(values),
            visible,
            lambda x: self.attention_dropout(x, training=training),
        )
        outputs = ops.transpose(outputs, (0, 2, 1, 3))  # (B n, s, H, d_v)
        padded = length + -length % size
        outputs = ops.reshape(outputs, (batch, padded, values.shape[-1]))
        return self.output_projection(outputs[:, :length])

    def compute_output_spec(self, inputs, *args, **kwargs):
        # The number of blocks must be known, which it is not on JAX.
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def _blocks(self, x, size, before, after):
        """Cuts `(B, T, F)` into `n` blocks of `s` positions and what is near.

        Each block gets so many `before` and `after` it, zeros beyond the ends:
        `(B n, (before + 1 + after) s, F)`.
        """
        batch, length = ops.shape(x)[:2]
        features = x.shape[-1]
        number = (length + size - 1) // size
        end = number * size - length + after * size
        x = ops.pad(x, [[0, 0], [before * size, end], [0, 0]])
        x = ops.reshape(x, (batch, number + before + after, size, features))
        near = [x[:, i : i + number] for i in range(before + 1 + after)]
        return ops.reshape(
            ops.concatenate(near, axis=2), (-1, len(near) * size, features)
        )

    def _near_mask(self, size, after):
        """Marks what the positions of a block see of it and its neighbors."""
        queries = np.arange(size)[:, None]
        keys = np.arange(-size, (1 + after) * size)[None, :]
        distance = keys - queries
        last = self.radius if after else 0
        return (distance >= -self.radius) & (distance <= last)

    def get_config(self):
        return {**super().get_config(), "radius": self.radius}
