"""Beam search (Vaswani et al., 2017, Section 6.1) as a TensorFlow graph.

It finds what `beam_search` finds, and faster: sentences that are done leave
the batch, shapes may grow from step to step, and the beam size may be a
tensor. XLA cannot compile it.

Axes: `B` sentences still searched, `K` beams, `C` candidates, 2 K or 1, `V`
vocabulary, `L` the longest limit.
"""

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.beam_search import Hypotheses
from keras_transformer.search.options import length_penalty_of

IMPOSSIBLE = -float("inf")


class Live(NamedTuple):
    """Hypotheses that go on; a dead one has log-probability -inf."""

    ids: tf.Tensor  # (B, K, L) int32
    last_ids: tf.Tensor  # (B, K) int32, what the model is given next
    log_probabilities: tf.Tensor  # (B, K) float32


class Candidates(NamedTuple):
    """The best continuations of all beams of a sentence, best first."""

    parents: tf.Tensor  # (B, C) int32, the beam that each continues
    ids: tf.Tensor  # (B, C) int32, its last token
    log_probabilities: tf.Tensor  # (B, C) float32, of the whole of it
    truncated: tf.Tensor  # (B, C) bool, ended though it had a better choice


class Sentences(NamedTuple):
    """What is known of each sentence before the search."""

    rows: tf.Tensor  # (B,) int32, its place in the whole batch
    limits: tf.Tensor  # (B,) int32, tokens
    length_penalties: tf.Tensor  # (B,) float32, α
    forced_ids: tf.Tensor  # (B, L) int32, padding where any may come


class _State(NamedTuple):
    """What a step changes."""

    index: tf.Tensor  # () int32, the position of the tokens to come
    live: Live
    finished: Hypotheses  # (B, N, ...), best first
    results: Hypotheses  # those of all sentences that have left
    sentences: Sentences
    model_state: Any  # (B * K, ...) or ()
    constants: Any  # (B, ...)


def graph_beam_search(
    next_step,
    initial_state,
    options,
    max_lengths,
    prefix_ids=None,
    constants=(),
):
    """Does what `beam_search` does, in a TensorFlow graph, and faster.

    Sentences that are done leave the batch once they are a quarter of it.

    Args:
        next_step: As of `beam_search`, for the sentences still searched.
        initial_state: As of `beam_search`; dimensions after the first may
            change from step to step where they are unknown to begin with.
        options: `SearchOptions`. `beam_size` and `num_hypotheses` may be int32
            scalar tensors.
        max_lengths: Int32 tensor `(B,)`, at least 1.
        prefix_ids: Int32 tensor `(B, P)`, padded.
        constants: Tuple of nested structures of tensors with `B` rows.

    Returns:
        `Hypotheses(ids, scores, lengths, truncated)`, best first; `L` is the
        largest limit.

    Example:
        >>> table = tf.math.log([[0.1, 0.6, 0.1, 0.1, 0.1]])
        >>> hypotheses = graph_beam_search(
        ...     next_step=lambda ids, index, state: (
        ...         tf.repeat(table, len(ids), axis=0),
        ...         state,
        ...     ),
        ...     initial_state=(),
        ...     options=keras_transformer.SearchOptions(beam_size=4),
        ...     max_lengths=tf.constant([3]),
        ... )
        >>> hypotheses.ids[0, 0]
        [1, 0, 0]
    """
    sentences = describe_sentences(options, max_lengths, prefix_ids)
    live, finished = first_hypotheses(options, sentences)
    state = _State(
        index=tf.constant(0),
        live=live,
        finished=finished,
        results=finished,
        sentences=sentences,
        model_state=initial_state,
        constants=constants,
    )
    state = tf.nest.map_structure(tf.convert_to_tensor, state)

    results = tf.nest.map_structure(lambda x: x.shape, state.results)
    shapes = shapes_of(state)._replace(results=results)

    def is_running(state):
        return tf.size(state.sentences.rows) > 0

    def take_step(state):
        logits, model_state = next_step(
            tf.reshape(state.live.last_ids, [-1]),
            state.index,
            state.model_state,
            *state.constants,
        )
        candidates = rank_candidates(
            logits,
            state.live,
            state.index,
            state.sentences,
            options,
            options.num_candidates,
        )
        live, finished, chosen, done = split_candidates(
            candidates,
            state.live,
            state.finished,
            state.index,
            state.sentences,
            options,
        )
        parents = tf.gather(candidates.parents, chosen, batch_dims=1)
        state = state._replace(
            index=state.index + 1, live=live, finished=finished
        )
        state, active_rows = _drop_sentences(state, done)
        model_state = reorder(model_state, parents, active_rows)
        return (state._replace(model_state=model_state),)

    (state,) = tf.while_loop(
        is_running,
        take_step,
        (state,),
        shape_invariants=(shapes,),
        parallel_iterations=1,
    )
    return clear_empty(state.results, options)


def describe_sentences(options, max_lengths, prefix_ids):
    """Returns the `Sentences` of a batch."""
    limits = tf.cast(max_lengths, tf.int32)
    batch, longest = tf.shape(limits)[0], longest_of(limits)
    forced_ids = tf.fill([batch, longest], options.padding_id)
    if prefix_ids is not None:
        forced_ids = tf.concat([tf.cast(prefix_ids, tf.int32), forced_ids], 1)[
            :, :longest
        ]
    # At the limit nothing but the end symbol may come.
    is_last = tf.range(longest) == limits[:, None] - 1
    alpha = tf.cast(options.length_penalty, tf.float32)
    return Sentences(
        tf.range(batch),
        limits,
        tf.broadcast_to(alpha, [batch]),
        tf.where(is_last, options.end_id, forced_ids),
    )


def first_hypotheses(options, sentences):
    """Returns what is `Live` before the first step, and what has ended."""
    beam_size, num_returned = options.beam_size, options.num_returned
    batch, longest = tf.unstack(tf.shape(sentences.forced_ids))
    # Only one beam starts alive, else all would walk the same path.
    alive = tf.concat([[0.0], tf.fill([beam_size - 1], IMPOSSIBLE)], axis=0)
    live = Live(
        tf.fill([batch, beam_size, longest], options.padding_id),
        tf.fill([batch, beam_size], options.begin_id),
        tf.tile(alive[None], [batch, 1]),
    )
    finished = Hypotheses(
        tf.fill([batch, num_returned, longest], options.padding_id),
        tf.fill([batch, num_returned], IMPOSSIBLE),
        tf.zeros([batch, num_returned], tf.int32),
        tf.zeros([batch, num_returned], tf.bool),
    )
    return live, finished


def rank_candidates(logits, live, index, sentences, options, count):
    """Finds the `count` best continuations of the live hypotheses.

    Each beam offers its `count` best. Fewer would do for those that go on, of
    which `K + 1` hold `K`; but which ends are among the best is known only
    when all others are there too.
    """
    logits = tf.cast(logits, tf.float32)
    width = tf.shape(logits)[1]
    logits = tf.reshape(logits, [-1, options.beam_size, width])
    normalizer = tf.reduce_logsumexp(logits, axis=2, keepdims=True)
    forced = tf.gather(sentences.forced_ids, index, axis=1)  # (B,)
    # Taken before the mask: a prefix may hold what is forbidden after it.
    forced_logits = tf.gather(logits, forced, axis=2, batch_dims=1)[:, :, None]
    never = tf.constant(options.never_chosen, tf.int32)
    forbidden = tf.reduce_any(tf.range(width)[:, None] == never, axis=1)
    logits += tf.where(forbidden, IMPOSSIBLE, 0.0)
    offered = tf.minimum(count, width)
    values, ids = tf.math.top_k(logits, offered)  # (B, K, offered)
    wants_end = ids[:, :, 0] == options.end_id
    # What is forced is offered once, and nothing else.
    forced = forced[:, None, None]
    is_free, is_first = forced == options.padding_id, tf.range(offered) == 0
    values = tf.where(
        is_free, values, tf.where(is_first, forced_logits, IMPOSSIBLE)
    )
    ids = tf.where(is_free, ids, forced)
    totals = live.log_probabilities[:, :, None] + values - normalizer
    shape = [-1, options.beam_size * offered]
    totals, best = tf.math.top_k(tf.reshape(totals, shape), count)
    parents = best // offered
    at_limit = index + 1 == sentences.limits[:, None]
    return Candidates(
        parents,
        tf.gather(tf.reshape(ids, shape), best, batch_dims=1),
        totals,
        at_limit & ~tf.gather(wants_end, parents, batch_dims=1),
    )


def split_candidates(candidates, live, finished, index, sentences, options):
    """Moves what ended to the finished, and keeps the `K` best of the others.

    Returns:
        What is `Live` now; the finished hypotheses; int32 `(B, K)`, the
        candidate that each live one was; and bool `(B,)`, which sentences are
        done, for none of their hypotheses goes on.
    """
    is_new = tf.range(tf.shape(live.ids)[2]) == index
    ids = tf.gather(live.ids, candidates.parents, batch_dims=1)
    ids = tf.where(is_new, candidates.ids[:, :, None], ids)  # (B, C, L)
    ended = candidates.ids == options.end_id
    alpha = sentences.length_penalties
    scores = (
        candidates.log_probabilities
        / length_penalty_of(index + 1, alpha)[:, None]
    )
    finished = _merge(
        finished,
        Hypotheses(
            ids,
            tf.where(ended, scores, IMPOSSIBLE),
            tf.fill(tf.shape(ended), index + 1),
            candidates.truncated,
        ),
    )
    alive = tf.where(ended, IMPOSSIBLE, candidates.log_probabilities)
    alive, chosen = tf.math.top_k(alive, options.beam_size)
    hope = alive[:, 0] / tf.maximum(
        length_penalty_of(index + 2, alpha),
        length_penalty_of(sentences.limits, alpha),
    )
    # A tie changes nothing: of equals, the earlier is kept. Nor does a NaN.
    done = ~(hope > finished.scores[:, -1])
    live = Live(
        tf.gather(ids, chosen, batch_dims=1),
        tf.gather(candidates.ids, chosen, batch_dims=1),
        tf.where(done[:, None], IMPOSSIBLE, alive),
    )
    return live, finished, chosen, done


def reorder(model_state, parents, active_rows):
    """Gives each hypothesis the state of the one that it continues.

    Args:
        model_state: Nested structure of tensors with `B * K` rows, or of rank
            0, which all share.
        parents: Int32 `(B, K)`, beams of the same sentence.
        active_rows: Int32 `(B',)`, the sentences that go on.
    """
    beam_size = tf.shape(parents)[1]
    rows = tf.gather(parents, active_rows) + beam_size * active_rows[:, None]
    rows = tf.reshape(rows, [-1])
    return tf.nest.map_structure(
        lambda x: tf.gather(x, rows) if x.shape.rank else x, model_state
    )


def clear_empty(hypotheses, options):
    """Writes padding, and nothing else, where there is no hypothesis."""
    is_filled = hypotheses.scores > IMPOSSIBLE
    return Hypotheses(
        tf.where(is_filled[:, :, None], hypotheses.ids, options.padding_id),
        hypotheses.scores,
        tf.where(is_filled, hypotheses.lengths, 0),
        is_filled & hypotheses.truncated,
    )


def longest_of(max_lengths):
    """Returns the largest limit; 1 of none."""
    return tf.reduce_max(tf.pad(max_lengths, [[0, 1]], constant_values=1))


def _merge(finished, ended):
    """Keeps the best of the finished hypotheses; of equals, the earlier."""
    both = [
        tf.concat(pair, axis=1) for pair in zip(finished, ended, strict=True)
    ]
    _, best = tf.math.top_k(both[1], tf.shape(finished.scores)[1])
    return Hypotheses(*[tf.gather(x, best, batch_dims=1) for x in both])


def _drop_sentences(state, done):
    """Lets done sentences leave with all that is theirs but the model's state.

    Every one is kept until a quarter is done: to take rows costs time.

    Returns:
        The state, and int32 `(B',)`, the rows that are kept.
    """
    active = tf.reduce_sum(tf.cast(~done, tf.int32))
    size = tf.size(done)
    theirs = (state.live, state.finished, state.sentences, state.constants)

    def keep():
        return state.results, theirs, tf.range(size)

    def drop():
        rows = state.sentences.rows[:, None]
        results = tf.nest.map_structure(
            lambda x, new: tf.tensor_scatter_nd_update(x, rows, new),
            state.results,
            state.finished,
        )
        active_rows = tf.cast(tf.where(~done)[:, 0], tf.int32)
        kept = tf.nest.map_structure(
            lambda x: tf.gather(x, active_rows), theirs
        )
        return results, kept, active_rows

    results, theirs, active_rows = tf.cond(4 * active <= 3 * size, drop, keep)
    live, finished, sentences, constants = theirs
    state = state._replace(
        live=live,
        finished=finished,
        results=results,
        sentences=sentences,
        constants=constants,
    )
    return state, active_rows


def shapes_of(variables):
    """Returns the shapes of a loop's variables, their first axis unknown."""

    def with_any_rows(x):
        return tf.TensorShape([None, *x.shape[1:]]) if x.shape.rank else x.shape

    return tf.nest.map_structure(with_any_rows, variables)
