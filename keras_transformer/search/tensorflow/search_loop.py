"""Beam search as a TensorFlow graph (Vaswani et al., 2017, Section 6.1).

It returns the same as `beam_search`, but faster: completed sentences leave the
batch, shapes may grow, and the beam size may be a tensor. XLA cannot compile
it.

There are two loops. The inner one runs steps with tensors of constant shapes.
The outer one removes completed sentences and enlarges the caches, every
`STEPS_PER_ROUND` steps or when a quarter of the sentences is complete. So a
step has few operations, which determine the time of small models.

Axes: `B` active sentences, `K` beams, `C` candidates, 2 K or 1, `N` hypotheses
returned, `V` vocabulary, `L` the longest limit.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.search.beam_step import forced_tokens, pad_missing
from keras_transformer.search.constraints import constraint_tensors
from keras_transformer.search.options import IMPOSSIBLE, length_penalty_of
from keras_transformer.search.search_result import Hypotheses
from keras_transformer.search.tensorflow.candidates import find_continuations

STEPS_PER_ROUND = 16  # Steps of an inner loop.


class Active(NamedTuple):
    """Active hypotheses; an unused slot has log-probability -inf."""

    ids: tf.Tensor  # (B, K, L) int32
    last_ids: tf.Tensor  # (B, K) int32, what the model is given next
    log_probabilities: tf.Tensor  # (B, K) float32


class Sentences(NamedTuple):
    """Limits and options of each sentence."""

    rows: tf.Tensor  # (B,) int32, its index in the whole batch
    limits: tf.Tensor  # (B,) int32, tokens
    length_penalties: tf.Tensor  # (B,) float32, α
    forced_ids: tf.Tensor  # (B, L) int32, padding where any may come
    constraints: Any  # Result of `constraint_tensors`
    sampling: Any  # Result of `sampling_tensors`; empty for beam search


class StepTensors(NamedTuple):
    """Values that depend on the step, with one row for each step."""

    forced_ids: tf.Tensor  # (L, B * K, 1) int32
    at_limit: tf.Tensor  # (L, B, 1) bool, whether the next token is the last
    penalties: tf.Tensor  # (L, B, 1) float32, of what ends in the step
    best_penalties: tf.Tensor  # (L, B, 1) float32, the largest after it
    constraints: Any  # Those of `Sentences`, with a row a hypothesis
    sampling: Any  # Those of `Sentences`


class _Round(NamedTuple):
    """Variables of the outer loop."""

    index: tf.Tensor  # () int32, the position of the tokens to come
    active: Active
    finished: Hypotheses
    done: tf.Tensor  # (B, 1) bool
    sentences: Sentences
    model_state: Any
    results: Hypotheses  # Those of the whole batch


class _Step(NamedTuple):
    """Variables of the inner loop."""

    index: tf.Tensor  # () int32
    num_active: tf.Tensor  # () int32, sentences that are not done
    done: tf.Tensor  # (B, 1) bool
    active: Active
    finished: Hypotheses
    buffers: Any  # What the model writes into


def run_search_loop(model, options, max_lengths, prefix_ids=None, sampling=None):
    """Beam search as in `beam_search`, in a TensorFlow graph, and faster.

    Args:
        model: An object with five methods, such as `GraphTransformer`:
            `start() -> state`, the state of all sentences;
            `gather_sentences(state, rows, capacity) -> (buffers, constants)`,
            which selects the sentences `rows` and enlarges the caches to
            `capacity` positions;
            `step(ids, index, buffers, constants) -> (logits, buffers)`;
            `reorder_beams(buffers, parents, constants) -> buffers`, which
            copies to each hypothesis the state of its parent; and
            `store_sentences(buffers, constants) -> state`.
        options: `SearchOptions`. `beam_size` and `num_hypotheses` may be int32
            scalar tensors.
        max_lengths: Int32 tensor `(B,)`, at least 1.
        prefix_ids: Int32 tensor `(B, P)`, padded.
        sampling: Result of `sampling_tensors`, to sample; then `options` are
            those of `with_one_beam`.

    Returns:
        `Hypotheses(ids, scores, lengths, truncated)`, best first; `L` is the
        largest limit.
    """
    sentences = describe_sentences(options, max_lengths, prefix_ids, sampling)
    active, finished = initial_hypotheses(options, sentences)
    state = _Round(
        index=tf.constant(0),
        active=active,
        finished=finished,
        done=tf.zeros_like(active.last_ids[:, :1], tf.bool),
        sentences=sentences,
        model_state=model.start(),
        results=finished,
    )
    results = tf.nest.map_structure(lambda x: x.shape, state.results)
    (state,) = tf.while_loop(
        lambda state: tf.reduce_any(~state.done),
        lambda state: (_take_steps(model, options, state),),
        (state,),
        shape_invariants=(shapes_of(state)._replace(results=results),),
        parallel_iterations=1,
    )
    return pad_missing(state.results, options)


def _take_steps(model, options, state):
    """Drops the complete sentences, and takes steps with the active ones.

    The steps end when the caches are full, or when a quarter of the sentences
    is complete.
    """
    rows = tf.cast(tf.where(~state.done)[:, 0], tf.int32)
    size = tf.size(rows)
    active, finished, sentences, done = tf.nest.map_structure(
        lambda x: tf.gather(x, rows),
        (state.active, state.finished, state.sentences, state.done),
    )
    capacity = (state.index // STEPS_PER_ROUND + 1) * STEPS_PER_ROUND
    buffers, constants = model.gather_sentences(state.model_state, rows, capacity)
    step_tensors = make_step_tensors(sentences, options)
    (step,) = tf.while_loop(
        lambda step: (4 * step.num_active > 3 * size) & (step.index < capacity),
        lambda step: (_take_step(model, options, step_tensors, constants, step),),
        (_Step(state.index, size, done, active, finished, buffers),),
        parallel_iterations=1,
    )
    return _Round(
        step.index,
        step.active,
        step.finished,
        step.done,
        sentences,
        model.store_sentences(step.buffers, constants),
        results=tf.nest.map_structure(
            lambda x, new: tf.tensor_scatter_nd_update(x, sentences.rows[:, None], new),
            state.results,
            step.finished,
        ),
    )


def _take_step(model, options, step_tensors, constants, step):
    """Extends each active hypothesis by one token."""
    logits, buffers = model.step(
        tf.reshape(step.active.last_ids, [-1]), step.index, step.buffers, constants
    )
    candidates = find_continuations(
        logits, step.active, step.index, step_tensors, options, options.num_candidates
    )
    active, finished, chosen, done = advance_beams(
        candidates, step.active, step.finished, step.index, step_tensors, options
    )
    parents = tf.gather(candidates.parents, chosen, batch_dims=1)
    buffers = model.reorder_beams(buffers, parents, constants)
    num_active = tf.reduce_sum(tf.cast(~done, tf.int32))
    return _Step(step.index + 1, num_active, done, active, finished, buffers)


def describe_sentences(options, max_lengths, prefix_ids=None, sampling=None):
    """Returns the `Sentences` of a batch."""
    limits = tf.cast(max_lengths, tf.int32)
    batch, longest = tf.shape(limits)[0], longest_limit(limits)
    alpha = tf.cast(options.length_penalty, tf.float32)
    return Sentences(
        tf.range(batch),
        limits,
        tf.broadcast_to(alpha, [batch]),
        forced_tokens(limits, prefix_ids, longest, options),
        constraint_tensors(options, limits),
        sampling or {},
    )


def initial_hypotheses(options, sentences):
    """Returns the initial active and finished hypotheses."""
    beam_size, num_returned = options.beam_size, options.num_returned
    batch, longest = tf.unstack(tf.shape(sentences.forced_ids))
    # Only one beam is active at first, else all would be equal.
    alive = tf.concat([[0.0], tf.fill([beam_size - 1], IMPOSSIBLE)], axis=0)
    active = Active(
        tf.fill([batch, beam_size, longest], options.padding_id),
        tf.fill([batch, beam_size], options.bos_id),
        tf.tile(alive[None], [batch, 1]),
    )
    finished = Hypotheses(
        tf.fill([batch, num_returned, longest], options.padding_id),
        tf.fill([batch, num_returned], IMPOSSIBLE),
        tf.zeros([batch, num_returned], tf.int32),
        tf.zeros([batch, num_returned], tf.bool),
    )
    return active, finished


def make_step_tensors(sentences, options):
    """Returns the `StepTensors` of sentences."""
    _, limits, alpha, forced_ids, *of_choices = sentences
    lengths = tf.range(1, tf.shape(forced_ids)[1] + 1)[:, None]  # (L, 1)
    offset = options.penalty_offset
    return StepTensors(
        tf.transpose(tf.repeat(forced_ids, options.beam_size, axis=0))[..., None],
        (lengths == limits)[..., None],
        length_penalty_of(lengths, alpha, offset)[..., None],
        tf.maximum(
            length_penalty_of(lengths + 1, alpha, offset),
            length_penalty_of(limits, alpha, offset),
        )[..., None],
        *tf.nest.map_structure(
            lambda x: tf.repeat(x, options.beam_size, axis=0), of_choices
        ),
    )


def advance_beams(candidates, active, finished, index, step_tensors, options):
    """Adds finished candidates to `finished`, and keeps the `K` best others.

    Returns:
        The new active and finished hypotheses; int32 `(B, K)`, the candidate of
        each active one; and bool `(B, 1)`, which sentences are complete, as
        none of their hypotheses is active.
    """
    ended = candidates.last_ids == options.eos_id
    scores = candidates.log_probabilities / tf.gather(step_tensors.penalties, index)
    scores = tf.where(ended, scores, IMPOSSIBLE)
    lengths = tf.fill(tf.shape(ended), index + 1)
    new = Hypotheses(candidates.ids, scores, lengths, candidates.truncated)
    # The earlier of equal hypotheses is kept.
    both = [tf.concat(pair, axis=1) for pair in zip(finished, new, strict=True)]
    _, best = tf.math.top_k(both[1], tf.shape(finished.scores)[1])
    finished = Hypotheses(*[tf.gather(x, best, batch_dims=1) for x in both])
    alive = tf.where(ended, IMPOSSIBLE, candidates.log_probabilities)
    alive, chosen = tf.math.top_k(alive, options.beam_size)
    best_possible_score = tf.reduce_max(alive, axis=1, keepdims=True)
    best_possible_score /= tf.gather(step_tensors.best_penalties, index)
    worst = tf.reduce_min(finished.scores, axis=1, keepdims=True)
    # On a tie, or with NaN, the earlier hypothesis is kept.
    done = ~(best_possible_score > worst)
    active = Active(
        tf.gather(candidates.ids, chosen, batch_dims=1),
        tf.gather(candidates.last_ids, chosen, batch_dims=1),
        tf.where(done, IMPOSSIBLE, alive),
    )
    return active, finished, chosen, done


def longest_limit(max_lengths):
    """Returns the largest limit, or 1 for an empty batch."""
    return tf.reduce_max(tf.pad(max_lengths, [[0, 1]], constant_values=1))


def shapes_of(variables):
    """Returns the shapes of a loop's variables; in each, the last axis is known.

    The others may change, as sentences leave the batch and caches grow.
    """

    def shape_of(x):
        known = x.shape[-1:] if x.shape.rank > 1 else []
        return tf.TensorShape([None] * (x.shape.rank - len(known)) + [*known])

    return tf.nest.map_structure(shape_of, variables)
