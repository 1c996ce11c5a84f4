"""The layers' computations on flat batches, in few TensorFlow operations.

The layers are the specification, and provide the weights and linear maps. Only
`GraphTransformer` uses this module.
"""

import tensorflow as tf

from keras_transformer.attention import FORBIDDEN


def embed(layer, ids):
    """Computes a `TokenEmbedding`."""
    x = tf.gather(tf.convert_to_tensor(layer.embeddings), ids)
    scale = layer.hidden_dim**0.5 if layer.scale else 1.0
    return tf.cast(x, tf.float32) * scale


def additive_mask(mask):
    """Returns 0 where a mask is True, and `FORBIDDEN` where it is not."""
    return tf.where(mask, 0.0, FORBIDDEN)


def project_keys_values(layer, x, length):
    """Returns the keys, over `sqrt(d_k)`, and values: both `(B, H, T, d)`.

    Args:
        layer: `MultiHeadAttention`.
        x: Float32 tensor `(B * T, D)`.
        length: Int, or int32 scalar tensor, `T`.
    """
    pair = []
    for part in (layer.key_projection, layer.value_projection):
        y = apply_linear(part, x)
        features = y.shape[-1] // layer.num_heads
        y = tf.reshape(y, [-1, length, layer.num_heads, features])
        # As `tf.transpose`, which oneDNN would do.
        y = tf.raw_ops.Einsum(inputs=[y], equation="bthd->bhtd")
        pair.append(y)
    keys, values = pair
    return keys * keys.shape[-1] ** -0.5, values


def attend(layer, x, length, keys, values, mask):
    """Computes attention (equation 1), for each query separately.

    Args:
        layer: `MultiHeadAttention`.
        x: Float32 tensor `(B * T, D)`.
        length: Int, or int32 scalar tensor, `T`.
        keys: Float32 tensor `(B, 1, H, S, d_k)`.
        values: Float32 tensor `(B, 1, H, S, d_v)`.
        mask: Float32 tensor that broadcasts to `(B, T, H, 1, S)`.

    Returns:
        Float32 tensor `(B * T, D)`.
    """
    heads, features = keys.shape[2], keys.shape[-1]
    queries = apply_linear(layer.query_projection, x)
    queries = tf.reshape(queries, [-1, length, heads, 1, features])
    logits = matmul(queries, keys, adj_y=True) + mask  # (B, T, H, 1, S)
    weights = tf.exp(tf.nn.log_softmax(logits))
    y = matmul(weights, values)  # (B, T, H, 1, d_v)
    y = tf.reshape(y, [-1, heads * values.shape[-1]])
    return apply_linear(layer.output_projection, y)


def feed_forward(layer, x):
    return apply_linear(layer.contract, apply_linear(layer.expand, x))


def apply_linear(layer, x):
    """Applies a `Linear` to rows, in float32."""
    return tf.cast(layer(x), tf.float32)


def matmul(x, y, adj_y=False):
    """Computes `tf.matmul` without oneDNN."""
    return tf.raw_ops.BatchMatMulV3(x=x, y=y, adj_y=adj_y, Tout=tf.float32)


def normalize_input(residual, x):
    """Computes `Residual.prepare`."""
    return normalize(residual.normalization, x) if residual.norm == "pre" else x


def add_and_norm(residual, x, y):
    """Computes `Residual`."""
    x = x + y
    return normalize(residual.normalization, x) if residual.norm == "post" else x


def finish_stack(stack, x):
    """Computes the end of a stack, after its layers."""
    return normalize(stack.normalization, x) if stack.norm == "pre" else x


def normalize(layer, x):
    """Applies a `LayerNormalization` to rows, in float32."""
    gamma, beta = (
        tf.cast(tf.convert_to_tensor(weight), tf.float32)
        for weight in (layer.gamma, layer.beta)
    )
    x -= tf.reduce_mean(x, axis=1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x), axis=1, keepdims=True)
    return x * tf.math.rsqrt(variance + layer.epsilon) * gamma + beta
