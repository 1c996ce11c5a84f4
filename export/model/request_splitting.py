"""Splits a request into chunks of bounded memory.

Memory is counted in three units: *beam positions* in a search, which are beams
times positions of source and translation, each with keys and values; *numbers*
in forced decoding, which are logits and attention weights; and *bytes* of text
before tokenization.
"""

from collections.abc import Callable

import tensorflow as tf

# Even a short text has logits, which are as large as the keys and values of
# many positions.
MIN_POSITIONS_PER_SENTENCE = 64
# 256 MiB as float32.
MAX_NUMBERS = 2**26
# Bytes of the texts that are tokenized together.
MAX_CHUNK_BYTES = 2**16
# Positions of all hypotheses of a request.
MAX_BEAM_POSITIONS = 2**22


def in_chunks(costs: tf.Tensor, budget: int, answer: Callable, blank):
    """Computes chunks of sentences of similar cost, the most expensive first.

    Args:
        costs: Int tensor `(B,)`, at least 1.
        budget: Int, maximum cost of a chunk, in which each sentence counts as
            much as the first. A sentence that costs more is a chunk by itself.
        answer: Function from indices of sentences, int32 `(C,)`, to a
            structure of tensors `(C, …)`.
        blank: The same structure of tensors `(B, …)`: the initial values.

    Returns:
        The structure of tensors `(B, …)`, in the order of the sentences.
    """
    count = tf.shape(costs)[0]
    costs, order = tf.math.top_k(tf.cast(costs, tf.int64), count)

    def take_chunk(start, results):
        most = tf.maximum(budget // costs[start], 1)
        end = start + tf.cast(tf.minimum(most, tf.int32.max // 2), tf.int32)
        rows = order[start:end]
        results = tf.nest.map_structure(
            lambda x, new: tf.tensor_scatter_nd_update(x, rows[:, None], new),
            results,
            answer(rows),
        )
        return start + tf.size(rows), results

    # One chunk at a time, to bound the memory.
    _, results = tf.while_loop(
        lambda start, _: start < count,
        take_chunk,
        (tf.constant(0), blank),
        parallel_iterations=1,
    )
    return results


def count_positions(lengths, limits):
    """Returns the positions of sources and of translations of such limits."""
    return tf.maximum(lengths + limits, MIN_POSITIONS_PER_SENTENCE)
