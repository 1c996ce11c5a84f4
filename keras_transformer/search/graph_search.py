"""Beam search (Vaswani et al., 2017, Section 6.1), as a TensorFlow graph.

Axes: `B` sentences, `K` beams, `V` vocabulary, `L` the longest limit.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.masks import PADDING_ID

END_ID = 1
BEGIN_ID = 3


class Hypotheses(NamedTuple):
    """The best translations of each sentence, best first.

    A slot that no hypothesis fills has score -inf and length 0.
    """

    ids: tf.Tensor
    """Int32 `(B, N, L)`, the end symbol included, then padding."""
    scores: tf.Tensor
    """Float32 `(B, N)`: log-probability over length penalty."""
    lengths: tf.Tensor
    """Int32 `(B, N)`, tokens, the end symbol counted."""
    truncated: tf.Tensor
    """Bool `(B, N)`: ended by the limit, not by the model's first choice."""


class _Live(NamedTuple):
    """Hypotheses that go on; a dead slot has log-probability -inf."""

    ids: tf.Tensor  # (B, K, L)
    log_probabilities: tf.Tensor  # (B, K)


def beam_search(
    next_step,
    initial_state,
    beam_size,
    length_penalty,
    max_lengths,
    num_hypotheses=None,
    forbidden_ids=(PADDING_ID, BEGIN_ID),
    prefix_ids=None,
    constants=(),
    pad_to=None,
):
    """Finds the target sequences of the highest normalized log-probability.

    A hypothesis of `n` tokens, the end symbol counted, scores
    `log p / ((5 + n) / 6) ** length_penalty` (Wu et al., 2016, equation 14).
    Each step keeps the `K` best continuations of the live hypotheses of a
    sentence. Those that end leave the beam for the list of finished ones, and
    change no more. A sentence is done when no live hypothesis can enter its
    list, whatever might follow: log-probabilities only fall, so one of `l` now
    scores at most `l` over the largest penalty still ahead, the first if
    `length_penalty` is negative and the last otherwise. No sentence looks at
    another, so a result does not depend on the batch. Sentences that are done
    leave it once they are a quarter of it.

    With `beam_size=1` this is greedy search; with a beam that holds every
    sequence it is exhaustive.

    Args:
        next_step: Function `(ids, index, state, *constants) -> (logits,
            state)`. `ids` is int32 `(B * K,)`, the last token of each
            hypothesis, `BEGIN_ID` at `index` 0; `index` is an int32 scalar,
            its position. `logits` are float `(B * K, V)`. Row `b * K + k` is
            beam `k` of sentence `b`, for the `B` that are still here.
        initial_state: What the first step gets as `state`: a nested structure
            of tensors, each with `B * K` rows. It is opaque here; the rows are
            reordered with the hypotheses. Other dimensions may change from
            step to step where they are unknown to begin with.
        beam_size: Int or int32 scalar tensor, at least 1: `K`, beams a
            sentence (4 in the paper).
        length_penalty: Float, or float32 tensor, a scalar or `(B,)`: `α`
            (0.6).
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            sentence, in tokens with the end symbol (source length + 50 in the
            paper). Hypotheses still live at the limit end there: their last
            token is the end symbol, at its price.
        num_hypotheses: Int or int32 scalar tensor, `N`: how many hypotheses
            to return; the search stops as soon as these are certain. `None`
            means `beam_size`.
        forbidden_ids: Ids that are never chosen. Their probability is not
            given to others.
        prefix_ids: Int32 tensor `(B, P)`, padded with 0: the tokens with which
            a sentence's hypotheses begin, at their price. They are to be
            shorter than the limit.
        constants: What `next_step` gets beside the state: a tuple of nested
            structures of tensors with `B` rows, one a sentence.
        pad_to: Int or int32 scalar tensor, `L`, not below any limit. With it
            no shape depends on a value and no sentence leaves the batch, so
            that XLA can compile the search. `None` means the largest limit.

    Returns:
        `Hypotheses(ids, scores, lengths, truncated)`, best first.

    Raises:
        ValueError: If `beam_size` is an int below 1, or `num_hypotheses` is
            not between 1 and it.

    Example:
        >>> table = tf.math.log([[0.1, 0.6, 0.1, 0.1, 0.1]])
        >>> hypotheses = beam_search(
        ...     next_step=lambda ids, index, state: (
        ...         tf.repeat(table, len(ids), axis=0),
        ...         state,
        ...     ),
        ...     initial_state=(),
        ...     beam_size=4,
        ...     length_penalty=0.6,
        ...     max_lengths=tf.constant([3]),
        ... )
        >>> hypotheses.ids[0, 0]
        [1, 0, 0]
    """
    hypotheses, _ = search_and_record(
        next_step,
        initial_state,
        beam_size,
        length_penalty,
        max_lengths,
        num_hypotheses,
        forbidden_ids,
        prefix_ids,
        constants,
        pad_to,
    )
    return hypotheses


def search_and_record(
    next_step,
    initial_state,
    beam_size,
    length_penalty,
    max_lengths,
    num_hypotheses=None,
    forbidden_ids=(PADDING_ID, BEGIN_ID),
    prefix_ids=None,
    constants=(),
    pad_to=None,
    record=lambda trace, here, index, total, tokens: trace,
    trace=(),
):
    """Searches as `beam_search` does, and lets `record` look on.

    Args:
        record: Function `(trace, here, index, total, tokens) -> trace`, called
            in each step. `here` is int32 `(B',)`, the sentences that are still
            in the batch; `total`, float32 `(B', K, k)`, are the
            log-probabilities of the continuations of each beam, and `tokens`,
            int32 of that shape, their last tokens. The `K` best of a sentence
            are its next beams, in that order.
        trace: What the first step gets as `trace`: a nested structure of
            tensors whose shapes stay.

    Returns:
        `Hypotheses`, and the last trace.
    """
    num_hypotheses = _check_sizes(beam_size, num_hypotheses)
    max_lengths = tf.cast(max_lengths, tf.int32)
    batch = tf.shape(max_lengths)[0]
    length_penalty = tf.broadcast_to(
        tf.cast(length_penalty, tf.float32), [batch]
    )
    if prefix_ids is None:
        prefix_ids = tf.zeros([batch, 0], tf.int32)
    # One more, of padding, for all that follows the prefix.
    prefix_ids = tf.pad(prefix_ids, [[0, 0], [0, 1]])
    prefix_end = tf.shape(prefix_ids)[1] - 1
    longest = longest_of(max_lengths) if pad_to is None else pad_to
    rows = tf.range(batch)
    live = _first_live(batch, beam_size, longest)
    finished = _none_finished(batch, num_hypotheses, longest)

    def condition(index, here, live, finished, state, constants, trace):
        return tf.reduce_any(live.log_probabilities > -tf.float32.max)

    def body(index, here, live, finished, state, constants, trace):
        """One step; `here` are the sentences that are still in the batch."""
        last = tf.gather(live.ids, tf.maximum(index - 1, 0), axis=2)
        last = tf.where(index == 0, BEGIN_ID, last)
        logits, state = next_step(
            tf.reshape(last, [-1]), index, state, *constants
        )
        limits = tf.gather(max_lengths, here)
        at_limit = index + 1 >= limits
        forced = tf.gather(prefix_ids, tf.minimum(index, prefix_end), axis=1)
        forced = tf.where(at_limit, END_ID, tf.gather(forced, here))
        scores, tokens, wants_end = _best_tokens(
            logits, forced, beam_size, forbidden_ids
        )
        total = live.log_probabilities[:, :, None] + scores  # (B, K, k)
        trace = record(trace, here, index, total, tokens)
        live, parents = _continue(live, total, tokens, index)
        cut = at_limit[:, None] & ~tf.gather(wants_end, parents, batch_dims=1)
        alpha = tf.gather(length_penalty, here)
        live, merged, done = _retire(
            live, _gather(finished, here), index, limits, alpha, cut
        )
        finished = _scatter(finished, here, merged)
        stay = tf.range(tf.shape(here)[0])
        if pad_to is None:
            stay, constants = _leave(~done, constants)
        # The states follow the hypotheses and leave with the sentences.
        parents = tf.gather(parents, stay) + stay[:, None] * beam_size
        parents = tf.reshape(parents, [-1])
        return (
            index + 1,
            tf.gather(here, stay),
            _gather(live, stay),
            finished,
            _gather(state, parents),
            constants,
            trace,
        )

    variables = (
        tf.constant(0),
        rows,
        live,
        finished,
        initial_state,
        constants,
        trace,
    )
    _, _, _, finished, _, _, trace = tf.while_loop(
        condition,
        body,
        variables,
        # `here`, `live`, `state` and `constants` lose the rows that leave.
        shape_invariants=_shapes_of(variables, shrinking=(1, 2, 4, 5)),
        parallel_iterations=1,
        maximum_iterations=longest,
    )
    found = finished.scores > -float("inf")
    hypotheses = finished._replace(
        ids=tf.where(found[:, :, None], finished.ids, PADDING_ID),
        lengths=tf.where(found, finished.lengths, 0),
        truncated=found & finished.truncated,
    )
    return hypotheses, trace


def _shapes_of(variables, shrinking):
    """Returns the shapes, those of places `shrinking` with rows unknown."""
    shapes = [
        tf.nest.map_structure(lambda x: x.shape, value) for value in variables
    ]
    for place in shrinking:
        shapes[place] = tf.nest.map_structure(
            lambda x: tf.TensorShape([None, *x[1:]]), shapes[place]
        )
    return tuple(shapes)


def longest_of(max_lengths):
    """Returns the largest limit; 1 of none."""
    return tf.reduce_max(tf.pad(max_lengths, [[0, 1]], constant_values=1))


def _check_sizes(beam_size, num_hypotheses):
    if isinstance(beam_size, int) and beam_size < 1:
        raise ValueError(
            f"`beam_size` must be at least 1. Received: beam_size={beam_size}"
        )
    if num_hypotheses is None:
        return beam_size
    known = isinstance(num_hypotheses, int)
    too_many = (
        known and isinstance(beam_size, int) and num_hypotheses > beam_size
    )
    if known and (num_hypotheses < 1 or too_many):
        raise ValueError(
            "`num_hypotheses` must be between 1 and `beam_size`. Received: "
            f"num_hypotheses={num_hypotheses}, beam_size={beam_size}"
        )
    return num_hypotheses


def length_penalty_of(length, length_penalty):
    """Returns `((5 + length) / 6) ** length_penalty`, float32."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** length_penalty


def _first_live(batch, beam_size, longest):
    # Only one beam starts alive, else all would walk the same path.
    first = tf.concat([[0.0], tf.fill([beam_size - 1], -float("inf"))], axis=0)
    return _Live(
        tf.zeros([batch, beam_size, longest], tf.int32),
        tf.tile(first[None], [batch, 1]),
    )


def _none_finished(batch, num_hypotheses, longest):
    return Hypotheses(
        tf.zeros([batch, num_hypotheses, longest], tf.int32),
        tf.fill([batch, num_hypotheses], -float("inf")),
        tf.zeros([batch, num_hypotheses], tf.int32),
        tf.zeros([batch, num_hypotheses], tf.bool),
    )


def _best_tokens(logits, forced, beam_size, forbidden_ids):
    """Returns the best next tokens of each beam and their log-probabilities.

    Where `forced`, int32 `(B,)`, is not padding, it is the only choice.

    Returns:
        Log-probabilities and ids, `(B, K, k)`, with `k = min(K, V)`, and
        whether the end symbol was the first choice, `(B, K)`.
    """
    logits = tf.cast(logits, tf.float32)
    size = tf.shape(logits)[1]
    normalizer = tf.reduce_logsumexp(logits, axis=1, keepdims=True)
    forbidden = tf.reduce_any(
        tf.range(size)[:, None] == tf.constant(forbidden_ids, tf.int32), axis=1
    )
    only = tf.repeat(forced, beam_size)[:, None]
    own = tf.gather(logits, only, batch_dims=1)  # Also where it is forbidden.
    logits += tf.where(forbidden, -float("inf"), 0.0)
    values, tokens = tf.math.top_k(logits, tf.minimum(beam_size, size))
    wants_end = tokens[:, 0] == END_ID
    # The forced token alone: its own value once, and no other choice.
    own = tf.concat([own, tf.fill(tf.shape(values[:, 1:]), -float("inf"))], 1)
    values = tf.where(only != PADDING_ID, own, values)
    tokens = tf.where(only != PADDING_ID, only, tokens)
    shape = [tf.shape(forced)[0], beam_size, -1]
    return (
        tf.reshape(values - normalizer, shape),
        tf.reshape(tokens, shape),
        tf.reshape(wants_end, shape[:2]),
    )


def _continue(live, total, tokens, index):
    """Takes the K best of the continuations of all beams of a sentence.

    Returns:
        The hypotheses with their new tokens, and the beams, `(B, K)`, from
        which they come.
    """
    shape = tf.shape(total)
    choices = tf.reshape(total, [shape[0], shape[1] * shape[2]])
    log_probabilities, chosen = tf.math.top_k(choices, shape[1])
    parents = chosen // shape[2]
    tokens = tf.gather(
        tf.reshape(tokens, tf.shape(choices)), chosen, batch_dims=1
    )
    ids = tf.gather(live.ids, parents, batch_dims=1)
    here = tf.range(tf.shape(ids)[2]) == index
    ids = tf.where(here, tokens[:, :, None], ids)
    return _Live(ids, log_probabilities), parents


def _retire(live, finished, index, limits, alpha, cut):
    """Moves the hypotheses that ended to the finished ones.

    Returns:
        The hypotheses that go on, the finished ones, and which sentences are
        done, bool `(B,)`: none of their hypotheses goes on.
    """
    ended = tf.gather(live.ids, index, axis=2) == END_ID
    scores = (
        live.log_probabilities / length_penalty_of(index + 1, alpha)[:, None]
    )
    ended_now = Hypotheses(
        live.ids,
        tf.where(ended, scores, -float("inf")),
        tf.fill(tf.shape(ended), index + 1),
        cut,
    )
    finished = _merge(finished, ended_now)
    alive = tf.where(ended, -float("inf"), live.log_probabilities)
    best = tf.reduce_max(alive, axis=1) / tf.maximum(
        length_penalty_of(index + 2, alpha), length_penalty_of(limits, alpha)
    )
    # A tie cannot enter either: of equals, the earlier stays.
    done = best <= finished.scores[:, -1]
    alive = tf.where(done[:, None], -float("inf"), alive)
    return live._replace(log_probabilities=alive), finished, done


def _merge(finished, ended_now):
    """Keeps the best of the finished hypotheses; of equals, the earlier."""
    size = tf.shape(finished.scores)[1]
    both = [
        tf.concat([old, new], axis=1)
        for old, new in zip(finished, ended_now, strict=True)
    ]
    _, best = tf.math.top_k(both[1], size)
    return Hypotheses(*[tf.gather(x, best, batch_dims=1) for x in both])


def _leave(alive, constants):
    """Says which sentences stay in the batch, and takes their constants.

    Every one stays until a quarter is done: to take the constants costs time.

    Returns:
        Int32 `(B',)`, the rows that stay, and the constants.
    """
    size = tf.shape(alive)[0]
    count = tf.reduce_sum(tf.cast(alive, tf.int32))
    flat = tf.nest.flatten(constants)

    def take():
        stay = tf.cast(tf.where(alive)[:, 0], tf.int32)
        return [stay, *_gather(flat, stay)]

    stay, *flat = tf.cond(
        4 * count <= 3 * size, take, lambda: [tf.range(size), *flat]
    )
    return stay, tf.nest.pack_sequence_as(constants, flat)


def _gather(structure, rows):
    return tf.nest.map_structure(lambda x: tf.gather(x, rows), structure)


def _scatter(structure, rows, updates):
    return tf.nest.map_structure(
        lambda x, update: tf.tensor_scatter_nd_update(x, rows[:, None], update),
        structure,
        updates,
    )
