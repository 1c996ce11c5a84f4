"""Multi-head attention (Vaswani et al., 2017, Section 3.2).

Axes: `B` batch, `T` queries, `S` keys, `H` heads, `D` features.
"""

import functools
import math
from typing import Any

import keras
from keras import ops

from keras_transformer.argument_checks import (
    check_fraction,
    check_optional_positive_int,
    check_positive_int,
    check_rank_3,
    check_sequence_shape,
)
from keras_transformer.layers.cache import FixedCache
from keras_transformer.layers.composite_layer import (
    CompositeLayer,
    LayerOutput,
    batch_and_length,
)
from keras_transformer.masks import causal_mask, combine_masks

# The logit of a forbidden key. It is finite, so that a query without allowed
# keys gets equal weights instead of NaN, and so large that it absorbs a logit
# that is added to it in float32.
FORBIDDEN = -1e30


def scaled_dot_product_attention(query, key, value, mask=None, dropout=None):
    """Computes `softmax(Q K^T / sqrt(d_k)) V` (Section 3.2.1, equation 1).

    The softmax runs in float32 whatever the dtype of the inputs.

    Args:
        query: Float tensor of shape `(B, H, T, key_dim)`.
        key: Float tensor of shape `(B, H, S, key_dim)`.
        value: Float tensor of shape `(B, H, S, value_dim)`.
        mask: Bool tensor that broadcasts to `(B, H, T, S)`, True where a
            query may attend to a key, or `None` for everywhere. A query that
            may attend to no key gets the mean of all values.
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
        logits = ops.where(mask, logits, FORBIDDEN)
    if logits.shape[-1] == 1:  # Keras warns about a softmax over one key.
        weights = ops.ones_like(logits)
    else:
        weights = ops.softmax(logits, axis=-1)
    weights = ops.cast(weights, value.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return ops.einsum("BHTS,BHSd->BHTd", dropped, value), weights


def fused_attention(query, key, value, mask=None):
    """Computes equation 1 by a fused kernel of the backend, if it has one.

    A fused kernel does not return attention weights, and saves memory. The
    arguments are those of `scaled_dot_product_attention`.
    """
    # TensorFlow has no such kernel, that of JAX needs d_k = d_v, and that of
    # torch returns float32 for float64.
    if (
        keras.backend.backend() == "tensorflow"
        or query.shape[-1] != value.shape[-1]
        or keras.backend.standardize_dtype(query.dtype) == "float64"
    ):
        return scaled_dot_product_attention(query, key, value, mask)[0]
    # Keras expects the heads after the positions.
    query, key, value = (ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
    outputs = ops.dot_product_attention(query, key, value, mask=mask)
    return ops.transpose(outputs, (0, 2, 1, 3))


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(CompositeLayer):
    """Attention by several heads at once, each in its own subspace.

    Computes `Concat(head_1, …, head_h) W^O` with
    `head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)` (Section 3.2.2). One matrix
    `(D, num_heads * key_dim)` holds the kernels of all heads for the queries,
    one for the keys and one for the values. So the fans of the Glorot
    initializer are those of the whole projection.

    The arguments have the names of `keras.layers.MultiHeadAttention`, of which
    this layer lacks `output_shape`, `attention_axes`, `sliding_window`,
    `flash_attention`, `use_gate` and `seed`. With the same weights, see
    `copy_attention_weights`, both layers give the same output.

    Args:
        num_heads: Positive int, `h` in the paper (8 in the base model).
        key_dim: Positive int, features of a head's queries and keys, `d_k`
            (64). It need not be the width divided by `num_heads`.
        value_dim: Positive int, features of a head's values, `d_v` (64).
            `None` means `key_dim`.
        dropout: Float in [0, 1), the share of attention weights dropped in
            training. Section 5.4 drops none.
        use_bias: Bool, whether the four projections add a bias. The paper's
            do not.
        kernel_initializer: Initializer of the four kernels, as Keras takes it
            (`"glorot_uniform"`); likewise `bias_initializer` (`"zeros"`).
        kernel_regularizer: Regularizer of the kernels, or `None`; likewise
            `bias_regularizer`.
        kernel_constraint: Constraint of the kernels, or `None`; likewise
            `bias_constraint`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        query: Float tensor of shape `(B, T, D)`.
        value: Float tensor of shape `(B, S, D_value)`.
        key: Float tensor of shape `(B, S, D_key)`. `None` means `value`.
        query_mask: Bool tensor `(B, T)`, which Keras fills. It has no effect,
            since nothing uses the output of a padded query.
        value_mask: Bool tensor `(B, S)`, False where a key is padding; or
            `(B, T, S)`, as `attention_mask`.
        key_mask: Bool tensor `(B, S)`, likewise; with both, a key must be True
            in both.
        attention_mask: Bool tensor `(T, S)`, or one that broadcasts to
            `(B, T, S)` or `(B, H, T, S)`.
        use_causal_mask: Bool, whether query `i` attends only to keys up to `i`,
            counted from the end of `cache` if there is one.
        cache: `FixedCache`, to which the keys and values of `value` are
            appended; the queries attend to all keys that it then holds. The
            masks of keys are ignored, since Keras fills them for the new keys
            only.
        return_attention_scores: Bool, whether to return the weights too.
        training: Bool, whether dropout is on.

    Returns:
        The output, of shape `(B, T, D)`, in the compute dtype. With
        `return_attention_scores`, a tuple with the attention weights, of
        shape `(B, H, T, S)`, after it; with `cache`, a tuple with the longer
        cache as its last item.

    Masking:
        Keras fills `query_mask`, `value_mask` and `key_mask` from the layers
        before this one. The mask of the output is that of `query`.

    Raises:
        ValueError: If `num_heads`, `key_dim` or `value_dim` is not a positive
            int, if `dropout` is not in [0, 1), if a last dimension is unknown
            when the layer is built, if `query`, `value`, `key` or
            `attention_mask` is of another rank, or if a `FixedCache` is full.

    Example:
        >>> layer = keras_transformer.MultiHeadAttention(num_heads=8, key_dim=64)
        >>> query, value = (keras.ops.ones((2, 7, 512)), keras.ops.ones((2, 9, 512)))
        >>> keras.ops.shape(layer(query, value))
        (2, 7, 512)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_fraction("dropout", dropout)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.key_dim = check_positive_int("key_dim", key_dim)
        self.value_dim = check_optional_positive_int("value_dim", value_dim)
        self.dropout = dropout
        self.use_bias = use_bias
        # Serialized, so that each map makes an initializer of its own: one of
        # Keras gives the same numbers each time.
        self.linear_options = keras.saving.serialize_keras_object(
            {
                "use_bias": use_bias,
                "kernel_initializer": keras.initializers.get(kernel_initializer),
                "bias_initializer": keras.initializers.get(bias_initializer),
                "kernel_regularizer": keras.regularizers.get(kernel_regularizer),
                "bias_regularizer": keras.regularizers.get(bias_regularizer),
                "kernel_constraint": keras.constraints.get(kernel_constraint),
                "bias_constraint": keras.constraints.get(bias_constraint),
            }
        )

    @property
    def value_width(self):
        """Features of a head's values, also if `value_dim` is `None`."""
        return self.value_dim or self.key_dim

    def build(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        check_sequence_shape("query", query_shape)
        check_sequence_shape("value", value_shape)
        check_sequence_shape("key", key_shape)
        keys = self.num_heads * self.key_dim
        values = self.num_heads * self.value_width
        linear = functools.partial(self.make_linear, **self.linear_options)
        self.query_projection = linear("query", keys, query_shape)
        self.key_projection = linear("key", keys, key_shape)
        self.value_projection = linear("value", values, value_shape)
        self.output_projection = linear(
            "output", query_shape[-1], (*query_shape[:-1], values)
        )
        self.attention_dropout = self.make_sublayer(
            keras.layers.Dropout, self.dropout, name="attention_dropout"
        )

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
        return_attention_scores=False,
        training=None,
    ):
        check_rank_3(query=query, value=value, key=key)
        lengths = {value.shape[1], value.shape[1] if key is None else key.shape[1]}
        if len(lengths - {None}) > 1:
            raise ValueError(
                "`key` must be as long as `value`. Received: lengths "
                f"{key.shape[1]} and {value.shape[1]}"
            )
        keys, values = self.project_keys_values(value, key)
        start_index, padding = 0, (value_mask, key_mask)
        if cache is not None:
            start_index, padding = cache.length, ()
            cache = cache.append(keys, values)
            keys, values = cache.keys, cache.values
        causal, key_length = None, ops.shape(keys)[2]
        if use_causal_mask:
            length = ops.shape(query)[1]
            causal = causal_mask(length, key_length, start_index)
        elif cache is not None:
            # Positions of the cache that are still empty are masked.
            causal = ops.less(ops.arange(key_length)[None], cache.length)
        mask = combine_masks(padding, attention_mask, causal)
        result = self.attend(
            query, keys, values, mask, return_attention_scores, training
        )
        result = result._replace(cache=cache)
        return result.select(return_attention_scores, cache is not None)

    def project_keys_values(self, value, key=None):
        """Returns the keys and values of all heads, the arguments of `attend`."""
        keys = self.key_projection(value if key is None else key)
        values = self.value_projection(value)
        return self._split_heads(keys), self._split_heads(values)

    def attend(
        self,
        query,
        keys,
        values,
        mask=None,
        return_attention_scores=False,
        training=None,
    ):
        """Returns the `LayerOutput` of attention to keys `(B, H, S, d)` and values."""
        queries = self._split_heads(self.query_projection(query))
        # Only the unfused form returns weights or applies dropout.
        if return_attention_scores or self.dropout:
            dropout = functools.partial(self.attention_dropout, training=training)
            outputs, weights = scaled_dot_product_attention(
                queries, keys, values, mask, dropout
            )
        else:
            outputs = fused_attention(queries, keys, values, mask)
            weights = None
        outputs = self.output_projection(self._merge_heads(outputs))
        return LayerOutput(outputs, weights)

    def make_cache(self, rows, max_length):
        """Makes an empty cache of `max_length` positions."""
        keys, values = (
            ops.zeros((rows, self.num_heads, max_length, features), self.compute_dtype)
            for features in (self.key_dim, self.value_width)
        )
        return FixedCache(keys, values, ops.zeros((), "int32"))

    def _split_heads(self, x):
        """Turns `(B, T, H d)` into `(B, H, T, d)`."""
        heads, features = self.num_heads, x.shape[-1] // self.num_heads
        if x.shape[1] == 1:  # A single query needs no transposition.
            return ops.reshape(x, (-1, heads, 1, features))
        x = ops.reshape(x, (*batch_and_length(x), heads, features))
        return ops.transpose(x, (0, 2, 1, 3))

    def _merge_heads(self, x):
        """Turns `(B, H, T, d)` into `(B, T, H d)`: `Concat` of the paper."""
        width = self.num_heads * x.shape[-1]
        if x.shape[2] == 1:
            return ops.reshape(x, (-1, 1, width))
        x = ops.transpose(x, (0, 2, 1, 3))
        return ops.reshape(x, (*batch_and_length(x), width))

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            **self.linear_options,
        }


def copy_attention_weights(source: Any, target: Any) -> None:
    """Copies the weights of one attention layer to another, of ours or of Keras.

    Args:
        source: A built `MultiHeadAttention` or `keras.layers.MultiHeadAttention`.
        target: Another built layer, of either class, with as many heads and the
            same widths.

    Raises:
        ValueError: If a layer is not built, or the weights are of other sizes.

    Example:
        >>> ours = keras_transformer.MultiHeadAttention(2, 4, use_bias=True)
        >>> keras_layer = keras.layers.MultiHeadAttention(2, 4)
        >>> for layer in (ours, keras_layer):
        ...     layer.build((None, None, 8), (None, None, 8))
        >>> copy_attention_weights(keras_layer, ours)
    """
    # Both have kernels, and biases, of query, key, value and output; Keras's have
    # an axis of heads.
    sizes = [
        [layer.num_heads, *(math.prod(weight.shape) for weight in layer.weights)]
        for layer in (source, target)
    ]
    if sizes[0] != sizes[1] or not source.weights:
        raise ValueError(
            "`source` and `target` must be built, with as many heads and weights of "
            "the same sizes. Received: heads and sizes "
            f"{sizes[0]} and {sizes[1]}"
        )
    for old, new in zip(source.weights, target.weights, strict=True):
        new.assign(ops.reshape(old, new.shape))
