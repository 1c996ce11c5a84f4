"""What the signatures that explain hand out."""

from collections.abc import Callable

import tensorflow as tf

from export.model.beam_trace import BeamTrace
from keras_transformer.search.graph_search import END_ID
from keras_transformer.search.graph_search import length_penalty_of


def stack_scores(scores, real) -> tf.Tensor:
    """Puts the attention weights of all layers into one tensor.

    Args:
        scores: Float tensors, one a layer, `(B, H, T, S)`.
        real: Bool tensor `(B, T)`, False where a query is padding.

    Returns:
        Float32 tensor `(B, N, H, T, S)`, with zeros in rows of padding.
    """
    stacked = tf.cast(tf.stack(scores, axis=1), tf.float32)
    return tf.where(real[:, None, None, :, None], stacked, 0.0)


def describe_trace(
    trace: BeamTrace,
    empty: tf.Tensor,
    length_penalty: float,
    pieces: Callable,
) -> dict[str, tf.Tensor]:
    """Returns the outputs of `explain_beam`, cut after the last step.

    Args:
        trace: What the search looked at.
        empty: Bool tensor `(B,)`, of which texts to say nothing.
        length_penalty: Float, `α`.
        pieces: Function from ids to pieces.
    """
    there = (trace.parents >= 0) & ~empty[:, None, None]
    running = tf.reduce_any(there, axis=2)  # (B, L)
    steps = tf.reduce_sum(
        tf.cast(tf.reduce_any(running, axis=0), tf.int32)
    )  # The longest search has no gap.
    there, running = there[:, :steps], running[:, :steps]
    parents, ids, log_probabilities = (x[:, :steps] for x in trace)
    count = tf.shape(ids)[2]
    penalties = length_penalty_of(tf.range(steps) + 1, length_penalty)
    return {
        "tokens": tf.where(there, pieces(ids), ""),
        "parents": tf.where(there, parents, -1),
        "log_probabilities": tf.where(there, log_probabilities, 0.0),
        "kept": there & (tf.range(count) < count // 2),
        "ended": there & (ids == END_ID),
        "penalties": tf.where(running, penalties, 0.0),
    }
