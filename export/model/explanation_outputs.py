"""Outputs of the signatures `explain` and `explain_beam`."""

from collections.abc import Callable

import tensorflow as tf

from export.model.beam_trace import BeamTrace
from keras_transformer.masks import EOS_ID
from keras_transformer.search.options import SearchOptions, length_penalty_of


def stack_scores(scores, real) -> tf.Tensor:
    """Stacks the attention weights of all layers.

    Args:
        scores: Float tensors, one a layer, `(B, H, T, S)`.
        real: Bool tensor `(B, T)`, False where a query is padding.

    Returns:
        Float32 tensor `(B, N, H, T, S)`, with zeros for queries of padding.
    """
    stacked = tf.cast(tf.stack(scores, axis=1), tf.float32)
    return tf.where(real[:, None, None, :, None], stacked, 0.0)


def no_scores(to_source) -> list[tf.Tensor]:
    """Returns zeros for the self-attention that a recurrent decoder lacks.

    Args:
        to_source: Float tensors, one a layer, `(B, H, T, S)`.

    Returns:
        Float tensors `(B, H, T, T)`.
    """
    rows, _, length, _ = tf.unstack(tf.shape(to_source[0]))
    return [tf.zeros([rows, x.shape[1], length, length]) for x in to_source]


def describe_trace(
    trace: BeamTrace, empty: tf.Tensor, options: SearchOptions, pieces: Callable
) -> dict[str, tf.Tensor]:
    """Returns the outputs of `explain_beam`, cut after the last step.

    Args:
        trace: The `BeamTrace`.
        empty: Bool tensor `(B,)`: texts without any token.
        options: Options of the search.
        pieces: Function from ids to subwords.
    """
    is_filled = (trace.parents >= 0) & ~empty[:, None, None]
    running = tf.reduce_any(is_filled, axis=2)  # (B, L)
    # The longest search fills all its steps.
    steps = tf.reduce_sum(tf.cast(tf.reduce_any(running, axis=0), tf.int32))
    is_filled, running = is_filled[:, :steps], running[:, :steps]
    parents, ids, log_probabilities, kept = (x[:, :steps] for x in trace)
    penalties = length_penalty_of(
        tf.range(steps) + 1, options.length_penalty, options.penalty_offset
    )
    return {
        "tokens": tf.where(is_filled, pieces(ids), ""),
        "parents": tf.where(is_filled, parents, -1),
        "log_probabilities": tf.where(is_filled, log_probabilities, 0.0),
        "kept": is_filled & kept,
        "ended": is_filled & (ids == EOS_ID),
        "penalties": tf.where(running, penalties, 0.0),
    }
