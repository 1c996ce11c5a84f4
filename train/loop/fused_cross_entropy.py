"""Cross-entropy of states, without all logits in memory (Section 5.4)."""

from typing import NamedTuple

import tensorflow as tf

# A chunk has this many rows for each feature of a state. Fewer are slower: each
# chunk adds a gradient `(V, D)`, which must be small beside its logits. The
# logits of narrow models then fit the cache of a processor.
ROWS_PER_FEATURE = 2


class LossSums(NamedTuple):
    """Float32 scalars, sums over tokens.

    Attributes:
        loss: Of `-sum_v q(v) log p(v)`, as `SmoothedCrossentropy` computes it.
        negative_log_likelihood: Of `-log p(label)`.
        accuracy: Number of labels with the highest logit. A label that shares it
            counts.
    """

    loss: tf.Tensor
    negative_log_likelihood: tf.Tensor
    accuracy: tf.Tensor


@tf.custom_gradient
def fused_cross_entropy(states, table, labels, label_smoothing):
    """Computes losses with `p = softmax(E h)`, and their gradients, in chunks.

    The gradient of a sum does not depend on it, so the loop over chunks of rows
    computes both (as Liger Kernel's fused linear cross-entropy does). With the
    logits `z = E h`, a loss is `-log p(label) + s (z(label) - mean(z))`, where
    `s = ε V / (V - 1)`; its gradient by `z` is `p`, less `1 - s` at the label
    and `s / V` everywhere. Only `p` takes passes over logits: the rest is rows
    and the mean of `E`.

    Args:
        states: Float tensor `(N, D)`, `h`, in the dtype of the products.
        table: Float32 tensor `(V, D)`, `E`.
        labels: Int tensor `(N,)`.
        label_smoothing: Float in [0, 1), `ε`.

    Returns:
        `LossSums`. Only `loss` has a gradient. In a graph that does not take it,
        TensorFlow leaves its products out.
    """
    vocabulary_size = table.shape[0]
    share = label_smoothing * vocabulary_size / (vocabulary_size - 1)
    weights = tf.cast(table, states.dtype)
    mean = tf.reduce_mean(table, axis=0)
    wide = tf.cast(states, tf.float32)
    sum_of_states = tf.reduce_sum(wide, axis=0)
    of_label = tf.cast(tf.gather(weights, labels), tf.float32)
    sums, of_states, of_table = for_each_chunk(
        states,
        weights,
        labels,
        # In float32, since a frequent label sums many small gradients.
        tf.tensor_scatter_nd_sub(
            tf.broadcast_to(-share / vocabulary_size * sum_of_states, table.shape),
            labels[:, None],
            (1 - share) * wide,
        ),
    )
    nll, label_logits, right = tf.unstack(sums)
    mean_logits = tf.reduce_sum(sum_of_states * mean)

    def gradient(upstream, *_):
        by_states = of_states - (1 - share) * of_label - share * mean
        by_states = tf.cast(upstream * by_states, states.dtype)
        return by_states, upstream * of_table, None, None

    return LossSums(nll + share * (label_logits - mean_logits), nll, right), gradient


def for_each_chunk(states, weights, labels, of_table):
    """Computes what takes logits.

    Returns:
        The three sums of `softmax_and_sums`; `p E`, float32 `(N, D)`; and
        `of_table` plus the sum of `p h^T`.
    """
    width = weights.shape[1]
    rows = ROWS_PER_FEATURE * width
    count = tf.maximum(1, -(-tf.shape(states)[0] // rows))

    def add_chunk(k, sums, of_states, of_table):
        part = slice(k * rows, (k + 1) * rows)
        chunk = states[part]
        logits = tf.matmul(chunk, weights, transpose_b=True)
        probabilities, terms = softmax_and_sums(logits, labels[part])
        half = tf.cast(probabilities, states.dtype)
        of_states = of_states.write(k, tf.cast(tf.matmul(half, weights), tf.float32))
        product = tf.matmul(half, chunk, transpose_a=True)
        return k + 1, sums + terms, of_states, of_table + tf.cast(product, tf.float32)

    of_states = tf.TensorArray(
        tf.float32, count, infer_shape=False, element_shape=(None, width)
    )
    _, sums, of_states, of_table = tf.while_loop(
        lambda k, *_: k < count,
        add_chunk,
        (0, tf.zeros(3), of_states, of_table),
        parallel_iterations=1,
    )
    return sums, of_states.concat(), of_table


def softmax_and_sums(logits, labels):
    """Returns `p`, `(C, V)`, and three sums over the rows, float32 `(3,)`.

    These are of `-log p(label)`, of the label's logits, and of rows in which no
    logit is higher.
    """
    logits = tf.cast(logits, tf.float32)
    probabilities = tf.nn.softmax(logits)
    highest = tf.reduce_max(logits, axis=1)
    # The highest probability is at least 1 / V, so its logarithm is finite.
    log_sum = highest - tf.math.log(tf.reduce_max(probabilities, axis=1))
    of_label = tf.gather(logits, labels, batch_dims=1)
    right = tf.cast(of_label >= highest, tf.float32)
    rows = tf.stack([log_sum - of_label, of_label, right])
    return probabilities, tf.reduce_sum(rows, axis=1)
