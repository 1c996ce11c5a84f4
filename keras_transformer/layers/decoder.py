"""The decoder (Vaswani et al., 2017, Section 3.1, right of Figure 1)."""

from typing import Any

import keras
from keras import ops

from keras_transformer.argument_checks import (
    check_choice,
    check_positive_int,
    check_rank_3,
    check_sequence_shape,
)
from keras_transformer.layers.cache import DecoderCache
from keras_transformer.layers.composite_layer import LayerOutput
from keras_transformer.layers.encoder_decoder_base import BaseLayer
from keras_transformer.layers.residual import make_normalization
from keras_transformer.layers.ssru import SSRU
from keras_transformer.masks import combine_masks

MIXERS = ("attention", "ssru")


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderLayer(BaseLayer):
    """Masked self-attention, attention to the memory, feed-forward network.

    Each of the three sub-layers is followed by "Add & Norm". A layer that is
    built without a memory has no second sub-layer; it is the layer of a causal
    language model.

    Args:
        num_heads: Positive int, `h` in the paper (8 in the base model).
        intermediate_dim: Positive int, inner features of the feed-forward
            network, `d_ff` (2048).
        mixer: `"attention"`, or `"ssru"` for an `SSRU` instead of
            self-attention.
        **kwargs: The other arguments of `EncoderLayer`, such as `dropout`.

    Call arguments:
        target: Float tensor `(B, T, D)`.
        memory: Float tensor `(B, S, D)`, the output of the encoder, or `None`.
        target_mask: Bool tensor `(B, T)`, False where a position is padding.
        memory_mask: Bool tensor `(B, S)`, likewise.
        cache: Pair: the result of self-attention's `make_cache`, and `(keys,
            values)` of the memory, or `None` without a memory. Keys and values
            may have `B / K` rows: then `K` rows of `target`, the beams of a
            sentence, share one. With a cache, `memory` and `target_mask` are
            ignored, and `memory_mask` has the memory's rows.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype. With
        `return_attention_scores`, a tuple with the pair of attention weights
        after it: those of self-attention, `(B, H, T, L)`, or `None` for a
        recurrence; and those of the attention to the memory, `(B, H, T, S)`,
        or `None` without a memory. If `K` rows share one of the memory's
        cache, the latter are `(B / K, H, K * T, S)`. With a cache, a tuple
        with the longer cache of self-attention as its last item.

    Masking:
        A position sees itself and earlier ones, and no padding. The mask of
        `target` passes on.

    Raises:
        ValueError: If an argument is out of its range, if a last dimension is
            unknown when the layer is built, or if there is a memory only when
            it is built, or only later.

    Example:
        >>> layer = keras_transformer.DecoderLayer(num_heads=8, intermediate_dim=2048)
        >>> target, memory = (keras.ops.ones((2, 7, 512)), keras.ops.ones((2, 9, 512)))
        >>> keras.ops.shape(layer(target, memory))
        (2, 7, 512)
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, mixer: str = "attention", **kwargs
    ):
        super().__init__(num_heads, intermediate_dim, **kwargs)
        check_choice("mixer", mixer, MIXERS)
        self.mixer = mixer
        # Keras would round the state of a recurrence in the cache.
        self.autocast = mixer != "ssru"

    def build(self, target_shape, memory_shape=None):
        check_sequence_shape("target", target_shape)
        if self.mixer == "ssru":
            self.recurrence = self.make_sublayer(SSRU, name="recurrence")
            self.recurrence.build(target_shape)
        else:
            self.self_attention = self.make_attention(
                "self_attention", target_shape, target_shape
            )
        self.self_attention_residual = self.make_residual(
            "self_attention_residual", target_shape
        )
        self.memory_attention = None
        if memory_shape is not None:
            check_sequence_shape("memory", memory_shape)
            self.memory_attention = self.make_attention(
                "memory_attention", target_shape, memory_shape
            )
            self.memory_attention_residual = self.make_residual(
                "memory_attention_residual", target_shape
            )
        self.build_feed_forward(target_shape)

    def call(
        self,
        target,
        memory=None,
        target_mask=None,
        memory_mask=None,
        cache=None,
        return_attention_scores=False,
        training=None,
    ):
        self_cache, memory_cache = (None, None) if cache is None else cache
        check_rank_3(target=target, memory=memory)
        given = memory if cache is None else memory_cache
        if (given is None) != (self.memory_attention is None):
            kinds = ["a tensor", "None"]
            wanted, received = kinds if given is None else kinds[::-1]
            raise ValueError(
                f"`memory` must be {wanted}, as when the layer was built. "
                f"Received: {received}"
            )
        x = target = ops.cast(target, self.compute_dtype)
        y = self.self_attention_residual.prepare(x)
        y, self_scores, self_cache = self._self_attend(
            y, target_mask, self_cache, return_attention_scores, training
        )
        x = self.self_attention_residual(x, y, training=training)
        memory_scores = None
        if self.memory_attention is not None:
            y = self.memory_attention_residual.prepare(x)
            y, memory_scores = self._attend_to_memory(
                y, memory, memory_mask, memory_cache, return_attention_scores, training
            )
            x = self.memory_attention_residual(x, y, training=training)
        x = self.apply_feed_forward(x, training)
        result = LayerOutput(x, (self_scores, memory_scores), self_cache)
        return result.select(return_attention_scores, cache is not None)

    def _self_attend(self, x, mask, cache, return_attention_scores, training):
        """Returns the `LayerOutput` of the first sub-layer."""
        if self.mixer == "ssru":
            mask = mask if cache is None else None
            return self.recurrence.run(x, mask=mask, cache=cache)
        return self.self_attention.run(
            x,
            x,
            value_mask=mask,
            use_causal_mask=True,
            cache=cache,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def make_cache(self, rows, max_length):
        """Makes the self-attention part of the initial cache."""
        mixer = self.recurrence if self.mixer == "ssru" else self.self_attention
        return mixer.make_cache(rows, max_length)

    def _attend_to_memory(
        self, x, memory, mask, cache, return_attention_scores, training
    ):
        """Returns the output and the weights, or `None` for these."""
        queries = x
        if cache is None:
            cache = self.memory_attention.project_keys_values(memory)
        else:
            # The beams of a sentence are additional queries to its memory.
            rows = ops.shape(cache[0])[0]
            queries = ops.reshape(x, (rows, -1, x.shape[-1]))
        y, scores, _ = self.memory_attention.attend(
            queries, *cache, combine_masks([mask]), return_attention_scores, training
        )
        return ops.reshape(y, ops.shape(x)), scores

    def get_config(self):
        return {**super().get_config(), "mixer": self.mixer}


@keras.saving.register_keras_serializable(package="keras_transformer")
class Decoder(BaseLayer):
    """A stack of equal decoder layers (Section 3.1).

    With `norm="pre"` the stack ends in one more layer normalization. Without
    a memory it is a causal language model.

    Args:
        num_layers: Positive int, `N` in the paper (6).
        num_heads: Positive int, `h` (8 in the base model).
        intermediate_dim: Positive int, `d_ff` (2048).
        **kwargs: The other arguments of `DecoderLayer`.

    Call arguments, masking and errors are those of `DecoderLayer`. `target`
    are embeddings with their positions. `cache` is the result of `make_cache`
    or of the previous call; then `target` follows the positions in the cache.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype. With
        `return_attention_scores`, a tuple with a pair of attention weights a
        layer after it; with a cache, a tuple with the longer cache as its last
        item.

    Example:
        >>> decoder = keras_transformer.Decoder(
        ...     num_layers=6, num_heads=8, intermediate_dim=2048
        ... )
        >>> target, memory = (keras.ops.ones((2, 7, 512)), keras.ops.ones((2, 9, 512)))
        >>> keras.ops.shape(decoder(target, memory))
        (2, 7, 512)
    """

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        mixer: str = "attention",
        **kwargs,
    ):
        super().__init__(num_heads, intermediate_dim, **kwargs)
        self.num_layers = check_positive_int("num_layers", num_layers)
        self.mixer = mixer
        self.autocast = mixer != "ssru"
        self.layers = [
            self.make_sublayer(
                DecoderLayer,
                **self.hyperparameters(),
                mixer=mixer,
                name=f"layer_{index}",
            )
            for index in range(self.num_layers)
        ]

    def build(self, target_shape, memory_shape=None):
        for layer in self.layers:
            layer.build(target_shape, memory_shape)
        if self.norm == "pre":
            self.normalization = make_normalization(self, target_shape)

    def call(
        self,
        target,
        memory=None,
        target_mask=None,
        memory_mask=None,
        cache=None,
        return_attention_scores=False,
        training=None,
    ):
        x = target
        caches = [None] * self.num_layers
        if cache is not None:
            memory_caches = cache.memory_caches or caches
            caches = zip(cache.self_caches, memory_caches, strict=True)
        scores, self_caches = [], []
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x, layer_scores, self_cache = layer.run(
                x,
                memory,
                target_mask=target_mask,
                memory_mask=memory_mask,
                cache=layer_cache,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            scores.append(layer_scores)
            self_caches.append(self_cache)
        if self.norm == "pre":
            x = self.normalization(x)
        if cache is not None:
            cache = cache._replace(self_caches=tuple(self_caches))
        result = LayerOutput(x, tuple(scores), cache)
        return result.select(return_attention_scores, cache is not None)

    def make_cache(
        self, max_length: Any, memory: Any = None, num_beams: Any = 1, rows: Any = None
    ) -> Any:
        """Makes the initial cache of decoding.

        Args:
            max_length: Int or int scalar tensor `L`, the maximum number of
                target positions.
            memory: Float tensor `(B, S, D)`, the output of the encoder, or
                `None`.
            num_beams: Positive int `K`, hypotheses a sentence.
            rows: Int or int scalar tensor, `B` if there is no memory.

        Returns:
            `DecoderCache`. Its `self_caches` have `B * K` rows, its
            `memory_caches` `B`: row `b * K + k` of the first belongs to row `b`
            of the second.
        """
        if not self.built:
            raise ValueError(
                "`make_cache` needs a decoder that is built or was called. "
                f"Received: {self.name}, which is not built"
            )
        memory_caches = ()
        if memory is not None:
            rows = ops.shape(memory)[0]
            memory_caches = tuple(
                layer.memory_attention.project_keys_values(memory)
                for layer in self.layers
            )
        self_caches = tuple(
            layer.make_cache(rows * num_beams, max_length) for layer in self.layers
        )
        return DecoderCache(self_caches, memory_caches)

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "mixer": self.mixer,
        }
