"""What a beam search looked at, step by step (Section 6.1).

Axes: `B` sentences, `K` beams, `C = 2 K` candidates, `L` the longest limit.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.masks import PADDING_ID
from keras_transformer.search.graph_search import longest_of
from keras_transformer.search.graph_search import search_and_record


class BeamTrace(NamedTuple):
    """The best continuations of each step, best first.

    The first `K` were kept: candidate `k` is the beam `k` that the next step
    continues, unless it ended. The others were pruned. A place that no
    candidate fills has log-probability -inf.
    """

    parents: tf.Tensor
    """Int32 `(B, L, C)`: the beam that a candidate continues, or -1."""
    ids: tf.Tensor
    """Int32 `(B, L, C)`: its last token, or 0."""
    log_probabilities: tf.Tensor
    """Float32 `(B, L, C)`: of the whole of it, not normalized."""


def trace_beam_search(
    next_step,
    initial_state,
    beam_size,
    length_penalty,
    max_lengths,
    **options,
):
    """Searches as `beam_search` does, and keeps what it looked at.

    A beam offers no more than its `K` best continuations, so the first step,
    which continues only one, prunes none.

    Args:
        next_step: See `beam_search`, as for all that follows.
        initial_state: The state of the first step.
        beam_size: Int or int32 scalar tensor, `K`.
        length_penalty: Float, or float32 tensor, a scalar or `(B,)`.
        max_lengths: Int32 tensor `(B,)`.
        **options: Further arguments of `beam_search`.

    Returns:
        `Hypotheses`, those of `beam_search`, and the `BeamTrace`.

    Example:
        >>> table = tf.math.log([[0.1, 0.6, 0.1, 0.1, 0.1]])
        >>> hypotheses, trace = trace_beam_search(
        ...     next_step=lambda ids, index, state: (
        ...         tf.repeat(table, len(ids), axis=0),
        ...         state,
        ...     ),
        ...     initial_state=(),
        ...     beam_size=2,
        ...     length_penalty=0.6,
        ...     max_lengths=tf.constant([3]),
        ...     num_hypotheses=1,
        ... )
        >>> trace.ids[0, 0]  # Ended, kept, and nothing to prune.
        [1, 2, 0, 0]
    """
    count = 2 * beam_size

    def record(trace, here, index, total, tokens):
        shape = tf.shape(total)
        flat = [shape[0], shape[1] * shape[2]]
        room = [[0, 0], [0, count]]
        choices = tf.pad(
            tf.reshape(total, flat), room, constant_values=-float("inf")
        )
        values, chosen = tf.math.top_k(choices, count)
        ids = tf.gather(
            tf.pad(tf.reshape(tokens, flat), room), chosen, batch_dims=1
        )
        there = values > -float("inf")
        step = BeamTrace(
            tf.where(there, chosen // shape[2], -1),
            tf.where(there, ids, PADDING_ID),
            values,
        )
        places = tf.stack([here, tf.fill(tf.shape(here), index)], axis=1)
        return tf.nest.map_structure(
            lambda x, update: tf.tensor_scatter_nd_update(x, places, update),
            trace,
            step,
        )

    max_lengths = tf.cast(max_lengths, tf.int32)
    shape = [tf.shape(max_lengths)[0], longest_of(max_lengths), count]
    nothing = BeamTrace(
        tf.fill(shape, -1),
        tf.fill(shape, PADDING_ID),
        tf.fill(shape, -float("inf")),
    )
    return search_and_record(
        next_step,
        initial_state,
        beam_size,
        length_penalty,
        max_lengths,
        **options,
        record=record,
        trace=nothing,
    )
