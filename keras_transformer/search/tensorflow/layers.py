"""The layers' computations on rows `(B * T, D)`, in few TensorFlow operations.

The layers are the specification, and provide the weights and linear maps. The
search, and the graphs of a LiteRT export, hand in their own attention.
"""

import tensorflow as tf

from keras_transformer.layers.attention import FORBIDDEN


def run_encoder(encoder, x, self_attend):
    """Computes an `Encoder`, by `self_attend(layer, x)` of each `attention`."""
    for layer in encoder.layers:
        x = add_sublayer(layer.attention_residual, x, self_attend, layer.attention)
        x = add_sublayer(layer.feed_forward_residual, x, feed_forward, layer)
    return finish_stack(encoder, x)


def run_decoder_step(decoder, x, self_attend, attend_to_memory):
    """Computes a step of a `Decoder`, by two functions `(index of layer, x)`."""
    for i, layer in enumerate(decoder.layers):
        x = add_sublayer(layer.self_attention_residual, x, self_attend, i)
        x = add_sublayer(layer.memory_attention_residual, x, attend_to_memory, i)
        x = add_sublayer(layer.feed_forward_residual, x, feed_forward, layer)
    return finish_stack(decoder, x)


def add_sublayer(residual, x, sublayer, argument):
    """Computes `Residual` around `sublayer(argument, x)`."""
    if residual.norm == "pre":
        return x + sublayer(argument, normalize(residual.normalization, x))
    return normalize(residual.normalization, x + sublayer(argument, x))


def feed_forward(layer, x):
    network = layer.feed_forward
    return apply_linear(network.contract, apply_linear(network.expand, x))


def finish_stack(stack, x):
    """Computes the end of a stack, after its layers."""
    return normalize(stack.normalization, x) if stack.norm == "pre" else x


def normalize(layer, x):
    """Applies a `LayerNormalization` to the last axis, in float32."""
    gamma, beta = (
        tf.cast(tf.convert_to_tensor(weight), tf.float32)
        for weight in (layer.gamma, layer.beta)
    )
    x -= tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x), axis=-1, keepdims=True)
    return x * tf.math.rsqrt(variance + layer.epsilon) * gamma + beta


def apply_linear(layer, x):
    """Applies a `Linear` to the last axis, in float32."""
    if x.shape.rank == 2:
        return tf.cast(layer(x), tf.float32)
    # Keras would flatten the other axes, and compute their sizes to restore them.
    y = tf.matmul(x, tf.cast(tf.convert_to_tensor(layer.kernel), tf.float32))
    if layer.bias is not None:
        y += tf.cast(tf.convert_to_tensor(layer.bias), tf.float32)
    return layer.activation(y)


def recur(layer, x, state):
    """Computes a step of an `SSRU`: returns its output and the new state."""
    kept = tf.sigmoid(apply_linear(layer.forget, x))
    state = kept * state + (1.0 - kept) * apply_linear(layer.update, x)
    return tf.nn.relu(state), state


def embed(layer, ids):
    """Computes a `TokenEmbedding`."""
    x = tf.gather(tf.convert_to_tensor(layer.embeddings), ids)
    scale = layer.hidden_dim**0.5 if layer.scale else 1.0
    return tf.cast(x, tf.float32) * scale


def encode_positions(transformer, count):
    """Returns the encodings of the first positions, `(count, D)`."""
    width = transformer.architecture.hidden_dim
    encodings = transformer.position_encoding(tf.zeros([1, count, width]))
    return tf.cast(encodings[0], tf.float32)


def additive_mask(mask):
    """Returns 0 where a mask is True, and `FORBIDDEN` where it is not."""
    return tf.where(mask, 0.0, FORBIDDEN)


def project_keys_values(layer, x, length):
    """Returns the keys, over `sqrt(d_k)`, and values `(B, H, T, d)` of `T` rows."""
    pair = []
    for part in (layer.key_projection, layer.value_projection):
        y = apply_linear(part, x)
        features = y.shape[-1] // layer.num_heads
        y = tf.reshape(y, [-1, length, layer.num_heads, features])
        # oneDNN would do `tf.transpose`, which is slower on small tensors.
        y = tf.raw_ops.Einsum(inputs=[y], equation="bthd->bhtd")
        pair.append(y)
    keys, values = pair
    return keys * layer.key_dim**-0.5, values


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
    queries = apply_linear(layer.query_projection, x)
    queries = tf.reshape(queries, [-1, length, layer.num_heads, 1, layer.key_dim])
    logits = matmul(queries, keys, adj_y=True) + mask  # (B, T, H, 1, S)
    weights = tf.exp(tf.nn.log_softmax(logits))
    y = matmul(weights, values)  # (B, T, H, 1, d_v)
    y = tf.reshape(y, [-1, layer.num_heads * layer.value_width])
    return apply_linear(layer.output_projection, y)


def matmul(x, y, adj_y=False):
    """Computes `tf.matmul` without oneDNN."""
    return tf.raw_ops.BatchMatMulV3(x=x, y=y, adj_y=adj_y, Tout=tf.float32)
