"""Multi-head attention (Vaswani et al., 2017, Section 3.2).

Axes: `B` batch, `T` queries, `S` keys, `H` heads, `D` features, `K` beams.
"""

import keras
from keras import ops

from keras_transformer.cache import is_end
from keras_transformer.cache import update
from keras_transformer.checks import check_fraction
from keras_transformer.checks import check_known_width
from keras_transformer.checks import check_positive_int
from keras_transformer.checks import check_sequences
from keras_transformer.linear import Linear
from keras_transformer.linear import batch_and_length
from keras_transformer.masks import causal_mask

# Added in float32, where exp(-1e9 - anything seen in practice) is 0, and
# finite, so that a row without any key to look at gives no NaN.
MASKED = -1e9


def scaled_dot_product_attention(query, key, value, mask=None, dropout=None):
    """Computes `softmax(Q K^T / sqrt(d_k)) V` (Section 3.2.1, equation 1).

    The softmax runs in float32 whatever the dtype of the inputs.

    Args:
        query: Float tensor of shape `(B, H, T, key_dim)`.
        key: Float tensor of shape `(B, H, S, key_dim)`.
        value: Float tensor of shape `(B, H, S, value_dim)`.
        mask: Bool tensor that broadcasts to `(B, H, T, S)`, True where a
            query may look at a key, or `None` for everywhere. A query that
            may look at no key gets the mean of all values.
        dropout: Function applied to the attention weights, or `None`.

    Returns:
        The outputs, of shape `(B, H, T, value_dim)`, and the attention weights
        before dropout, of shape `(B, H, T, S)`.

    Example:
        >>> query = keras.ops.ones((2, 4, 5, 8))
        >>> outputs, weights = scaled_dot_product_attention(query, query, query)
        >>> keras.ops.shape(weights)
        (2, 4, 5, 5)
    """
    query = query * ops.cast(query.shape[-1] ** -0.5, query.dtype)
    logits = ops.einsum("BHTd,BHSd->BHTS", query, key)
    logits = ops.cast(logits, "float32")
    if mask is not None:
        hidden = ops.cast(ops.logical_not(mask), "float32")
        logits = logits + hidden * MASKED
    if logits.shape[-1] == 1:  # Keras warns of a softmax over one key.
        weights = ops.ones_like(logits)
    else:
        weights = ops.softmax(logits, axis=-1)
    weights = ops.cast(weights, value.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return ops.einsum("BHTS,BHSd->BHTd", dropped, value), weights


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """Attention by several heads at once, each in its own subspace.

    Computes `Concat(head_1, …, head_h) W^O` with
    `head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)` (Section 3.2.2). The
    kernels of all heads lie side by side in one matrix each for queries, keys
    and values, of shape `(D, num_heads * key_dim)`, so that the Glorot fans
    are those of the whole projection.

    Names of arguments follow `keras.layers.MultiHeadAttention`, which this
    layer equals under copied weights.

    Args:
        num_heads: Positive int, `h` in the paper (8 in the base model).
        key_dim: Positive int, features of a head's queries and keys, `d_k`
            (64). It need not be the width divided by `num_heads`.
        value_dim: Positive int, features of a head's values, `d_v` (64).
            `None` means `key_dim`.
        dropout: Float in [0, 1), the share of attention weights dropped in
            training. The paper drops none.
        use_bias: Bool, whether the four projections add a bias. The paper's
            do not.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        query: Float tensor of shape `(B, T, D)`.
        value: Float tensor of shape `(B, S, D_value)`.
        key: Float tensor of shape `(B, S, D_key)`. `None` means `value`.
        query_mask: Bool tensor `(B, T)`, which Keras fills. Not used: what a
            padded query computes is never looked at.
        value_mask: Bool tensor `(B, S)`, False where a key is padding.
        key_mask: Bool tensor `(B, S)`, likewise; both hold where both come.
            With `cache_update_index` neither is looked at: what Keras fills
            in speaks of the new keys alone.
        attention_mask: Bool tensor `(T, S)`, or one that broadcasts to
            `(B, T, S)`.
        use_causal_mask: Bool, whether query `i` sees only keys up to `i`,
            counted from `cache_update_index` where there is a cache.
        cache: Pair `(keys, values)` of shapes `(B, H, L, key_dim)` and
            `(B, H, L, value_dim)`, as `make_cache` gives it. Three modes:
            without a cache, keys and values are projected from `key` and
            `value`; with a cache and an index, they are projected, written
            into the cache from that index on, and the whole cache is attended
            to; with a cache alone, `key` and `value` are ignored and the
            queries look at the cache. In that last mode the batch of `query`
            may be `K` times that of the cache: `K` consecutive rows (the
            beams of a sentence) share a row of it.
        cache_update_index: Int or int scalar tensor, the position of the
            first query, `L - T` at most; or the int -1, behind the last: the
            cache grows. A tensor is not checked.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        The output, of shape `(B, T, D)`, in the compute dtype. With
        `return_attention_scores`, a tuple with the attention weights, of
        shape `(B, H, T, S)`, after it (with a cache alone, `(B / K, H, K * T,
        S)`: the cache's batch); with `cache_update_index`, a tuple with the
        updated cache as its last item.

    Masking:
        Keras fills `query_mask`, `value_mask` and `key_mask` from the layers
        before this one. The mask of the output is that of `query`.

    Raises:
        ValueError: If `num_heads`, `key_dim` or `value_dim` is no positive
            int, if `dropout` is not in [0, 1), if a last dimension is unknown
            when the layer is built, if `query`, `value`, `key` or
            `attention_mask` is of another rank, or if `cache_update_index`
            comes without `cache` or is an int that lies outside of it.

    Example:
        >>> layer = keras_transformer.MultiHeadAttention(
        ...     num_heads=8, key_dim=64
        ... )
        >>> query, value = (
        ...     keras.ops.ones((2, 7, 512)),
        ...     keras.ops.ones((2, 9, 512)),
        ... )
        >>> keras.ops.shape(layer(query, value))
        (2, 7, 512)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_int("num_heads", num_heads)
        check_positive_int("key_dim", key_dim)
        if value_dim is not None:
            check_positive_int("value_dim", value_dim)
        check_fraction("dropout", dropout)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.supports_masking = True

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        check_known_width("query", query_shape)
        check_known_width("value", value_shape)
        check_known_width("key", key_shape)
        keys = self.num_heads * self.key_dim
        values = self.num_heads * (self.value_dim or self.key_dim)
        self.query_projection = self._project("query", query_shape, keys)
        self.key_projection = self._project("key", key_shape, keys)
        self.value_projection = self._project("value", value_shape, values)
        self.output_projection = self._project(
            "output", (*query_shape[:-1], values), query_shape[-1]
        )
        self.attention_dropout = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name="attention_dropout"
        )

    def _project(self, name, input_shape, units):
        layer = Linear(
            units,
            use_bias=self.use_bias,
            kernel_initializer="glorot_uniform",
            dtype=self.dtype_policy,
            name=name,  # Saved weights are found by this name.
        )
        layer.build(input_shape)
        return layer

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        cache_update_index=None,
        return_attention_scores=False,
        training=None,
    ):
        if cache is None and cache_update_index is not None:
            raise ValueError(
                "`cache_update_index` needs a `cache` to write to. "
                f"Received: cache_update_index={cache_update_index}, cache=None"
            )
        check_sequences(query=query, value=value, key=key)
        queries = self.query_projection(query)
        if cache is not None and cache_update_index is None:
            # The beams of a sentence are so many more queries to its cache.
            rows, width = ops.shape(cache[0])[0], queries.shape[-1]
            queries = ops.reshape(queries, (rows, -1, width))
        keys, values, start_index = self._keys_and_values(
            value, key, cache, cache_update_index
        )
        if cache_update_index is not None:
            value_mask = key_mask = None
            if is_end(cache_update_index) and query.shape[1] == 1:
                use_causal_mask = False  # The last position sees all.
        mask = self._combine_masks(
            ops.shape(query)[1],
            ops.shape(keys)[2],
            value_mask,
            key_mask,
            attention_mask,
            use_causal_mask,
            start_index,
        )
        outputs, weights = scaled_dot_product_attention(
            self._split_heads(queries),
            keys,
            values,
            mask,
            lambda x: self.attention_dropout(x, training=training),
        )
        if outputs.shape[2] != 1:
            outputs = ops.transpose(outputs, (0, 2, 1, 3))  # (B, T, H, d_v)
        width = self.num_heads * values.shape[-1]
        outputs = ops.reshape(outputs, (*batch_and_length(query), width))
        returned = (self.output_projection(outputs),)
        if return_attention_scores:
            returned += (weights,)
        if cache_update_index is not None:
            returned += ((keys, values),)
        return returned if len(returned) > 1 else returned[0]

    def _keys_and_values(self, value, key, cache, cache_update_index):
        """Returns what is looked at, and where the first query stands in it."""
        if cache is None:
            return *self.make_cache(value, key), 0
        if cache_update_index is None:
            return *cache, 0
        start_index = cache_update_index
        if is_end(cache_update_index):
            start_index = ops.shape(cache[0])[2]
        keys, values = (
            update(old, new, cache_update_index)
            for old, new in zip(cache, self.make_cache(value, key), strict=True)
        )
        return keys, values, start_index

    def make_cache(self, value, key=None):
        """Projects keys and values once, for calls that share them.

        Args:
            value: Float tensor of shape `(B, S, D_value)`.
            key: Float tensor of shape `(B, S, D_key)`. `None` means `value`.

        Returns:
            Pair `(keys, values)` of shapes `(B, H, S, key_dim)` and
            `(B, H, S, value_dim)`.
        """
        keys = self.key_projection(value if key is None else key)
        values = self.value_projection(value)
        return self._split_heads(keys), self._split_heads(values)

    def _split_heads(self, x):
        heads, features = self.num_heads, x.shape[-1] // self.num_heads
        if x.shape[1] == 1:  # Nothing to transpose.
            return ops.reshape(x, (-1, heads, 1, features))
        x = ops.reshape(x, (*batch_and_length(x), heads, features))
        return ops.transpose(x, (0, 2, 1, 3))

    def _combine_masks(
        self,
        length,
        key_length,
        value_mask,
        key_mask,
        attention_mask,
        use_causal_mask,
        start_index,
    ):
        """Returns one mask that broadcasts to `(B, H, T, S)`, or `None`."""
        padding = (value_mask, key_mask)
        masks = [m[:, None, None, :] for m in padding if m is not None]
        if attention_mask is not None:
            if len(attention_mask.shape) not in (2, 3):
                raise ValueError(
                    "`attention_mask` must be of shape (T, S) or (B, T, S). "
                    f"Received: shape {tuple(attention_mask.shape)}"
                )
            masks.append(ops.expand_dims(attention_mask, -3))
        if use_causal_mask:
            mask = causal_mask(length, key_length, start_index)
            masks.append(mask[None, None, :, :])
        combined = None
        for mask in masks:
            mask = ops.cast(mask, "bool")
            combined = (
                mask if combined is None else ops.logical_and(combined, mask)
            )
        return combined

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        return query_shape

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, for what it returns depends on its arguments.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
        }
