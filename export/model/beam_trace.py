"""Records the candidates of each step of beam search (Section 6.1).

Axes: `B` sentences, `K` beams, `C = 2 K` candidates, `L` the longest limit.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.beam_step import pad_missing
from keras_transformer.search.options import SearchOptions, length_penalty_of
from keras_transformer.search.tensorflow import search_loop
from keras_transformer.search.tensorflow.candidates import find_continuations
from keras_transformer.special_ids import EOS_ID


class BeamTrace(NamedTuple):
    """The best continuations of each step, best first.

    Positions without a candidate have log-probability -inf.
    """

    parents: tf.Tensor
    """Int32 `(B, L, C)`: the candidate of the step before that this one
    continues, 0 in the first step, or -1 where there is no candidate."""
    ids: tf.Tensor
    """Int32 `(B, L, C)`: its last token, or 0."""
    log_probabilities: tf.Tensor
    """Float32 `(B, L, C)`: log-probability of the candidate, not normalized."""
    kept: tf.Tensor
    """Bool `(B, L, C)`: finished or still active; the others were pruned."""


def trace_beam_search(model, options, max_lengths, prefix_ids=None):
    """Runs the steps of `run_search_loop`, whose arguments these are.

    Every sentence stays in the batch to the end.

    Returns:
        `Hypotheses`, equal to those of `run_search_loop`, and the `BeamTrace`.
    """
    sentences = search_loop.describe_sentences(options, max_lengths, prefix_ids)
    active, finished = search_loop.initial_hypotheses(options, sentences)
    batch, longest = tf.unstack(tf.shape(sentences.forced_ids))
    shape = [longest, batch, 2 * options.beam_size]
    step_tensors = search_loop.make_step_tensors(sentences, options)
    buffers, constants = model.gather_sentences(model.start(), sentences.rows, longest)
    # Outside of a loop TensorFlow merges equal tensors, such as empty caches of
    # keys and of values, and steps would then write into shared memory.
    buffers = tf.nest.map_structure(lambda x: tf.raw_ops.DeepCopy(x=x), buffers)

    def is_running(index, active, *_):
        return tf.reduce_any(active.log_probabilities > search_loop.IMPOSSIBLE)

    def take_step(index, active, finished, places, buffers, trace):
        """`places`, `(B, K)`, are the candidates that the active ones were."""
        logits, buffers = model.step(
            tf.reshape(active.last_ids, [-1]), index, buffers, constants
        )
        candidates = find_continuations(
            logits, active, index, step_tensors, options, shape[2]
        )
        trace = tf.nest.map_structure(
            lambda x, new: tf.tensor_scatter_nd_update(x, [[index]], new[None]),
            trace,
            describe_step(candidates, places, options),
        )
        count = options.num_candidates
        candidates = tf.nest.map_structure(lambda x: x[:, :count], candidates)
        active, finished, places, _ = search_loop.advance_beams(
            candidates, active, finished, index, step_tensors, options
        )
        parents = tf.gather(candidates.parents, places, batch_dims=1)
        buffers = model.reorder_beams(buffers, parents, constants)
        return index + 1, active, finished, places, buffers, trace

    variables = (
        tf.constant(0),
        active,
        finished,
        tf.zeros_like(active.last_ids),
        buffers,
        BeamTrace(
            tf.fill(shape, -1),
            tf.fill(shape, options.padding_id),
            tf.fill(shape, search_loop.IMPOSSIBLE),
            tf.fill(shape, False),
        ),
    )
    _, _, finished, _, _, trace = tf.while_loop(
        is_running,
        take_step,
        variables,
        shape_invariants=search_loop.shapes_of(variables),
    )
    trace = [tf.transpose(x, [1, 0, 2]) for x in trace]
    return pad_missing(finished, options), BeamTrace(*trace)


def describe_step(candidates, places, options) -> BeamTrace:
    """Returns one step of a trace, its tensors `(B, C)`."""
    is_filled = candidates.log_probabilities > search_loop.IMPOSSIBLE
    ended = candidates.last_ids == options.eos_id
    before = tf.cumsum(tf.cast(~ended, tf.int32), axis=1, exclusive=True)
    is_seen = tf.range(tf.shape(ended)[1]) < options.num_candidates
    parents = tf.gather(places, candidates.parents, batch_dims=1)
    return BeamTrace(
        tf.where(is_filled, parents, -1),
        tf.where(is_filled, candidates.last_ids, options.padding_id),
        candidates.log_probabilities,
        is_filled & is_seen & (ended | (before < options.beam_size)),
    )


def describe_trace(
    trace: BeamTrace, empty: tf.Tensor, options: SearchOptions, pieces: Callable
) -> dict[str, tf.Tensor]:
    """Returns the outputs of `explain_beam`, cut after the last step.

    Texts that are `empty`, `(B,)`, have no candidates; `pieces` returns the
    subwords of ids. What ends at a step has its log-probability divided by the
    step's penalty.
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
