"""The decoder (Vaswani et al., 2017, Section 3.1, right of Figure 1).

The cache of a decoder is a pair `(self_caches, memory_caches)` of tuples with
one item a layer. An item is a pair `(keys, values)`. Self-attention's grow as
the target does and have a row for every hypothesis; the memory's are computed
once, and a row of them serves all hypotheses of a sentence.
"""

import keras
from keras import ops

from keras_transformer.attention import MultiHeadAttention
from keras_transformer.cache import check_cache
from keras_transformer.checks import check_known_width
from keras_transformer.checks import check_positive_int
from keras_transformer.feed_forward import FeedForward
from keras_transformer.residual import Residual
from keras_transformer.residual import make_normalization


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderLayer(keras.layers.Layer):
    """Masked self-attention, attention to the memory, feed-forward network.

    Each of the three sub-layers stands in "Add & Norm".

    Args:
        num_heads: Positive int, `h` in the paper (8 in the base model).
        key_dim: Positive int, features of a head's queries and keys, `d_k`.
        value_dim: Positive int, features of a head's values, `d_v`.
        intermediate_dim: Positive int, inner features of the feed-forward
            network, `d_ff` (2048).
        dropout: Float in [0, 1), `P_drop` (0.1), applied to the output of
            each sub-layer (Section 5.4).
        norm: `"post"`, as published, or `"pre"`; see `Residual`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        target: Float tensor `(B, T, D)`.
        memory: Float tensor `(B, S, D)`, the output of the encoder.
        target_mask: Bool tensor `(B, T)`, False where a position is padding.
        memory_mask: Bool tensor `(B, S)`, likewise.
        cache: Pair of pairs `(keys, values)`: of self-attention, `(B, H, L,
            ·)`, and of the memory, `(B / K, H, S, ·)`. With a cache, `memory`
            and `target_mask` are not looked at, and `memory_mask` has the
            batch of the memory's cache.
        cache_update_index: Int or int scalar tensor, the position of the
            first target token, where the cache is written; or -1, behind the
            last: the cache grows.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype. With
        `return_attention_scores`, a tuple with the pair of attention weights
        after it, of self-attention and of the attention to the memory, as
        `MultiHeadAttention` gives them; with a cache, a tuple with the updated
        cache of self-attention as its last item.

    Masking:
        A position sees itself and earlier ones, and no padding. The mask of
        `target` passes on.

    Raises:
        ValueError: If an argument is out of its range, if a last dimension is
            unknown when the layer is built, or if only one of `cache` and
            `cache_update_index` is given.

    Example:
        >>> layer = keras_transformer.DecoderLayer(8, 64, 64, 2048, 0.1)
        >>> target, memory = (
        ...     keras.ops.ones((2, 7, 512)),
        ...     keras.ops.ones((2, 9, 512)),
        ... )
        >>> keras.ops.shape(layer(target, memory))
        (2, 7, 512)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim,
        intermediate_dim,
        dropout,
        norm="post",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.norm = norm
        self.supports_masking = True
        common = {"dtype": self.dtype_policy}
        heads = (num_heads, key_dim, value_dim)
        self.self_attention = MultiHeadAttention(
            *heads, name="self_attention", **common
        )
        self.self_attention_residual = Residual(
            dropout, norm, name="self_attention_residual", **common
        )
        self.memory_attention = MultiHeadAttention(
            *heads, name="memory_attention", **common
        )
        self.memory_attention_residual = Residual(
            dropout, norm, name="memory_attention_residual", **common
        )
        self.feed_forward = FeedForward(
            intermediate_dim, name="feed_forward", **common
        )
        self.feed_forward_residual = Residual(
            dropout, norm, name="feed_forward_residual", **common
        )

    def build(self, target_shape, memory_shape):
        check_known_width("target", target_shape)
        check_known_width("memory", memory_shape)
        self.self_attention.build(target_shape, target_shape)
        self.self_attention_residual.build(target_shape)
        self.memory_attention.build(target_shape, memory_shape)
        self.memory_attention_residual.build(target_shape)
        self.feed_forward.build(target_shape)
        self.feed_forward_residual.build(target_shape)

    def call(
        self,
        target,
        memory,
        target_mask=None,
        memory_mask=None,
        cache=None,
        cache_update_index=None,
        return_attention_scores=False,
        training=None,
    ):
        check_cache(cache, cache_update_index)
        self_cache, memory_cache = (None, None) if cache is None else cache
        x = target
        y = self.self_attention_residual.enter(x)
        y, self_scores, *self_cache = self.self_attention(
            y,
            y,
            value_mask=target_mask,
            use_causal_mask=True,
            cache=self_cache,
            cache_update_index=cache_update_index,
            return_attention_scores=True,
            training=training,
        )
        x = self.self_attention_residual(x, y, training=training)
        y, memory_scores = self.memory_attention(
            self.memory_attention_residual.enter(x),
            memory,
            value_mask=memory_mask,
            cache=memory_cache,
            return_attention_scores=True,
            training=training,
        )
        x = self.memory_attention_residual(x, y, training=training)
        y = self.feed_forward(self.feed_forward_residual.enter(x))
        x = self.feed_forward_residual(x, y, training=training)
        returned = [x]
        if return_attention_scores:
            returned.append((self_scores, memory_scores))
        returned += self_cache
        return tuple(returned) if len(returned) > 1 else x

    def compute_output_shape(self, target_shape, memory_shape):
        return target_shape

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, which returns a tuple when it has a cache.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "norm": self.norm,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class Decoder(keras.layers.Layer):
    """A stack of equal decoder layers (Section 3.1).

    With `norm="pre"` the stack ends in one more layer normalization.

    Args:
        num_layers: Positive int, `N` in the paper (6).
        num_heads: Positive int, `h` (8 in the base model).
        key_dim: Positive int, features of a head's queries and keys, `d_k`.
        value_dim: Positive int, features of a head's values, `d_v`.
        intermediate_dim: Positive int, `d_ff` (2048).
        dropout: Float in [0, 1), `P_drop` (0.1).
        norm: `"post"`, as published, or `"pre"`; see `Residual`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        target: Float tensor `(B, T, D)`: embeddings with their positions.
        memory: Float tensor `(B, S, D)`, the output of the encoder.
        target_mask: Bool tensor `(B, T)`, False where a position is padding.
        memory_mask: Bool tensor `(B, S)`, likewise.
        cache: What `make_cache` or the call before returned.
        cache_update_index: Int or int scalar tensor, the position of the
            first target token, where the cache is written; or -1, behind the
            last: the cache grows. With a cache, `memory` and `target_mask` are
            not looked at, and `memory_mask` has the memory's batch.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype. With
        `return_attention_scores`, a tuple with a pair of attention weights a
        layer after it; with a cache, a tuple with the updated cache as its
        last item.

    Masking:
        A position sees itself and earlier ones, and no padding. The mask of
        `target` passes on.

    Raises:
        ValueError: If an argument is out of its range, if a last dimension is
            unknown when the layer is built, or if only one of `cache` and
            `cache_update_index` is given.

    Example:
        >>> decoder = keras_transformer.Decoder(6, 8, 64, 64, 2048, 0.1)
        >>> target, memory = (
        ...     keras.ops.ones((2, 7, 512)),
        ...     keras.ops.ones((2, 9, 512)),
        ... )
        >>> keras.ops.shape(decoder(target, memory))
        (2, 7, 512)
    """

    def __init__(
        self,
        num_layers,
        num_heads,
        key_dim,
        value_dim,
        intermediate_dim,
        dropout,
        norm="post",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_int("num_layers", num_layers)
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.norm = norm
        self.supports_masking = True
        self.layers = [
            DecoderLayer(
                num_heads,
                key_dim,
                value_dim,
                intermediate_dim,
                dropout,
                norm,
                dtype=self.dtype_policy,
                name=f"layer_{index}",
            )
            for index in range(num_layers)
        ]

    def build(self, target_shape, memory_shape):
        for layer in self.layers:
            layer.build(target_shape, memory_shape)
        if self.norm == "pre":
            self.normalization = make_normalization(self, target_shape)

    def call(
        self,
        target,
        memory,
        target_mask=None,
        memory_mask=None,
        cache=None,
        cache_update_index=None,
        return_attention_scores=False,
        training=None,
    ):
        check_cache(cache, cache_update_index)
        x = target
        caches = [None] * self.num_layers
        if cache is not None:
            caches = list(zip(*cache, strict=True))
        scores, updated = [], []
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x, layer_scores, *self_cache = layer(
                x,
                memory,
                target_mask=target_mask,
                memory_mask=memory_mask,
                cache=layer_cache,
                cache_update_index=cache_update_index,
                return_attention_scores=True,
                training=training,
            )
            scores.append(layer_scores)
            updated += self_cache
        if self.norm == "pre":
            x = self.normalization(x)
        returned = [x]
        if return_attention_scores:
            returned.append(tuple(scores))
        if cache is not None:
            returned.append((tuple(updated), cache[1]))
        return tuple(returned) if len(returned) > 1 else x

    def make_cache(self, memory, max_length=0, num_beams=1):
        """Makes the cache with which decoding starts.

        Args:
            memory: Float tensor `(B, S, D)`, the output of the encoder.
            max_length: Int or int scalar tensor `L`, the number of target
                positions there will be at most; 0 for a cache that grows,
                which TensorFlow runs faster and XLA cannot compile.
            num_beams: Positive int `K`, hypotheses a sentence.

        Returns:
            Pair `(self_caches, memory_caches)` of tuples with one pair
            `(keys, values)` a layer: zeros of shapes `(B * K, H, L, key_dim)`
            and `(B * K, H, L, value_dim)`, and the projected memory, of
            shapes `(B, H, S, key_dim)` and `(B, H, S, value_dim)`. Row
            `b * K + k` of the first belongs to row `b` of the second.
        """
        rows = ops.shape(memory)[0] * num_beams
        self_caches, memory_caches = [], []
        for layer in self.layers:
            memory_cache = layer.memory_attention.make_cache(memory)
            memory_caches.append(memory_cache)
            self_caches.append(
                tuple(
                    ops.zeros(
                        (rows, self.num_heads, max_length, x.shape[-1]), x.dtype
                    )
                    for x in memory_cache
                )
            )
        return tuple(self_caches), tuple(memory_caches)

    def compute_output_shape(self, target_shape, memory_shape):
        return target_shape

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, which returns a tuple when it has a cache.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "norm": self.norm,
        }
