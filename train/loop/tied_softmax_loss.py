"""Cross-entropy of logits that share the embedding matrix (Section 3.4)."""

import tensorflow as tf


@tf.custom_gradient
def label_losses(states, table, labels):
    """Computes `-log p(label)` with `p = softmax(E h)`, and the best ids.

    Equals TensorFlow's sparse cross-entropy of the logits, with about half as
    many passes over `(N, V)`: one softmax, and a gradient that takes the
    label's part from rows of `E` and scales `(N, D)` instead of `(N, V)`.

    Args:
        states: Float tensor `(N, D)`, `h`, in the dtype of the products.
        table: Float32 tensor `(V, D)`, `E`.
        labels: Int tensor `(N,)`.

    Returns:
        Float32 losses `(N,)`, and the ids `(N,)` of the highest logits, which
        have no gradient.
    """
    weights = tf.cast(table, states.dtype)
    logits = tf.matmul(states, weights, transpose_b=True)
    logits = tf.cast(logits, tf.float32)
    best = tf.argmax(logits, axis=1, output_type=labels.dtype)
    probabilities = tf.nn.softmax(logits)
    # The highest probability is at least 1 / V, so its logarithm is finite.
    highest = tf.gather(logits, best, batch_dims=1)
    log_sum = highest - tf.math.log(tf.gather(probabilities, best, batch_dims=1))
    losses = log_sum - tf.gather(logits, labels, batch_dims=1)

    def gradient(upstream, _):
        upstream = upstream[:, None]  # (N, 1)
        half = tf.cast(probabilities, states.dtype)
        mean = tf.cast(tf.matmul(half, weights), tf.float32)
        of_states = upstream * (mean - tf.gather(table, labels))
        scaled = upstream * tf.cast(states, tf.float32)  # (N, D)
        of_table = tf.matmul(half, tf.cast(scaled, states.dtype), transpose_a=True)
        # In float32, since a frequent label sums many small gradients.
        of_table = tf.tensor_scatter_nd_sub(
            tf.cast(of_table, tf.float32), labels[:, None], scaled
        )
        return tf.cast(of_states, states.dtype), of_table, None

    return (losses, best), gradient
