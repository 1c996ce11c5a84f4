"""Beam search (Vaswani et al., 2017, Section 6.1), on every backend of Keras.

Axes: `B` sentences, `K` beams, `C` candidates, `N` hypotheses returned, `V`
vocabulary, `L` room for tokens, the longest limit or more.
"""

from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.search.options import length_penalty_of

IMPOSSIBLE = -float("inf")


class Hypotheses(NamedTuple):
    """The best translations of each sentence, best first.

    A slot that no hypothesis fills has score -inf and length 0.
    """

    ids: Any
    """Int32 `(B, N, L)`, the end symbol included, then padding."""
    scores: Any
    """Float32 `(B, N)`: log-probability over length penalty."""
    lengths: Any
    """Int32 `(B, N)`, tokens, the end symbol counted."""
    truncated: Any
    """Bool `(B, N)`: ended by the limit, not by the model's first choice."""


class Candidates(NamedTuple):
    """Continuations of a sentence's beams, best first."""

    ids: Any  # (B, C, L) int32
    last_ids: Any  # (B, C) int32, the tokens that are new
    log_probabilities: Any  # (B, C) float32, -inf where there is none
    parents: Any  # (B, C) int32, the beam that each continues
    truncated: Any  # (B, C) bool, ended though it had a better choice


class BeamState(NamedTuple):
    """What a step changes."""

    index: Any  # () int32, the position of the tokens to come
    ids: Any  # (B, K, L) int32, live hypotheses
    last_ids: Any  # (B, K) int32, what the model is given next
    log_probabilities: Any  # (B, K) float32, -inf where one is dead
    finished: Hypotheses  # (B, N, ...), best first
    model_state: Any  # (B * K, ...) or ()


def beam_search(
    next_step,
    initial_state,
    options,
    max_lengths,
    prefix_ids=None,
    constants=(),
    max_length=None,
):
    """Finds the target sequences of the highest normalized log-probability.

    A hypothesis of `n` tokens, the end symbol counted, scores
    `log p / ((5 + n) / 6) ** length_penalty` (Wu et al., 2016, equation 14).
    Each step ranks the continuations of the live hypotheses of a sentence and
    takes the best `2 K`, as the paper's authors do in tensor2tensor. Those
    that end join the list of the finished and change no more; the best `K` of
    the others stay alive. A beam ends in one way only, so there are `K`.

    A sentence is done when no live hypothesis can join its `N` best, whatever
    may follow: log-probabilities only fall, so one of `log p` now scores at
    most `log p` over the largest penalty to come, which is the first if
    `length_penalty` is negative and the last otherwise. No sentence looks at
    another, so a result does not depend on the batch.

    With `beam_size=1` this is greedy search: it looks at one continuation,
    the first choice, and is done when that ends. With a beam that holds every
    sequence it is exhaustive.

    Args:
        next_step: Function `(ids, index, state, *constants) -> (logits,
            state)`. `ids` is int32 `(B * K,)`, the last token of each
            hypothesis, `begin_id` at `index` 0; `index` is an int32 scalar,
            its position. `logits` are float `(B * K, V)`, `V` known. Row
            `b * K + k` is beam `k` of sentence `b`.
        initial_state: What the first step gets as `state`: a nested structure
            of tensors. Those with `B * K` rows are reordered with the
            hypotheses; those of rank 0 are shared by all and left alone.
        options: `SearchOptions`.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            sentence, in tokens with the end symbol (source length + 50 in the
            paper). Hypotheses still live at the limit end there: their last
            token is the end symbol, at its price.
        prefix_ids: Int32 tensor `(B, P)`, padded: the tokens with which a
            sentence's hypotheses begin, at their price. They are to be fewer
            than the limit.
        constants: Tuple of what `next_step` gets beside the state.
        max_length: Int, `L`, not below any limit, so that all shapes are
            known. `None` means the largest limit, which must have a value,
            as it has outside of compiled functions.

    Returns:
        `Hypotheses(ids, scores, lengths, truncated)`, best first.

    Example:
        >>> table = np.log([[0.1, 0.6, 0.1, 0.1, 0.1]])
        >>> hypotheses = beam_search(
        ...     next_step=lambda ids, index, state: (
        ...         keras.ops.repeat(table, len(ids), axis=0),
        ...         state,
        ...     ),
        ...     initial_state=(),
        ...     options=keras_transformer.SearchOptions(beam_size=4),
        ...     max_lengths=np.array([3]),
        ... )
        >>> hypotheses.ids[0, 0]
        [1, 0, 0]
    """
    limits = ops.cast(max_lengths, "int32")
    if max_length is None:
        max_length = int(ops.max(limits, initial=1))
    limits = ops.minimum(limits, max_length)
    alpha = ops.convert_to_tensor(options.length_penalty, "float32")
    alpha = ops.broadcast_to(alpha, ops.shape(limits))
    forced_ids = find_forced(limits, prefix_ids, max_length, options)

    def is_running(beams):
        return ops.any(may_improve(beams, limits, alpha))

    def take_step(beams):
        logits, model_state = next_step(
            ops.reshape(beams.last_ids, [-1]),
            beams.index,
            beams.model_state,
            *constants,
        )
        forced = ops.take(forced_ids, beams.index, axis=1)
        offers = offer_tokens(logits, forced, options)
        at_limit = ops.equal(beams.index + 1, limits)
        candidates = rank_candidates(beams, *offers, at_limit, options)
        finished = add_ended(beams, candidates, alpha, options)
        beams = keep_live(beams, candidates, model_state, options)
        return (beams._replace(finished=finished),)

    beams = start(initial_state, ops.shape(limits)[0], max_length, options)
    (beams,) = ops.while_loop(is_running, take_step, (beams,))
    return clear_empty(beams.finished, options)


def find_forced(limits, prefix_ids, max_length, options):
    """Returns the tokens without a choice, `(B, L)`, and padding elsewhere."""
    shape = (ops.shape(limits)[0], max_length)
    forced_ids = ops.full(shape, options.padding_id, "int32")
    if prefix_ids is not None:
        prefix_ids = ops.cast(prefix_ids, "int32")
        forced_ids = ops.concatenate([prefix_ids, forced_ids], axis=1)
        forced_ids = forced_ids[:, :max_length]
    is_last = ops.equal(ops.arange(max_length), limits[:, None] - 1)
    return ops.where(is_last, options.end_id, forced_ids)


def start(initial_state, batch, max_length, options):
    """Returns the `BeamState` in which each sentence has one hypothesis."""
    live, returned = options.beam_size, options.num_returned
    # Were all beams alive, they would walk the same path.
    alive = np.array([0.0] + [IMPOSSIBLE] * (live - 1), "float32")
    padding = options.padding_id
    return BeamState(
        index=ops.convert_to_tensor(0, "int32"),
        ids=ops.full((batch, live, max_length), padding, "int32"),
        last_ids=ops.full((batch, live), options.begin_id, "int32"),
        log_probabilities=ops.broadcast_to(alive, (batch, live)),
        finished=Hypotheses(
            ids=ops.full((batch, returned, max_length), padding, "int32"),
            scores=ops.full((batch, returned), IMPOSSIBLE, "float32"),
            lengths=ops.zeros((batch, returned), "int32"),
            truncated=ops.zeros((batch, returned), "bool"),
        ),
        model_state=initial_state,
    )


def offer_tokens(logits, forced, options):
    """Finds the best `C` next tokens of each beam: all may come from one.

    `K + 1` would hold the `K` that go on. But which of those that end are
    among the best `2 K` is known only when all others are there too.

    Args:
        logits: Float `(B * K, V)`.
        forced: Int32 `(B,)`, the only choice where it is not padding.
        options: `SearchOptions`.

    Returns:
        Their log-probabilities and ids, `(B, K, C)`, or `V` if that is less;
        and bool `(B, K)`, whether a beam would end if nothing were forced.
    """
    vocabulary = np.arange(logits.shape[-1])
    logits = ops.reshape(logits, [-1, options.beam_size, len(vocabulary)])
    logits = ops.cast(logits, "float32")
    forbidden = np.isin(vocabulary, options.never_chosen)
    values, ids = ops.top_k(
        ops.where(forbidden, IMPOSSIBLE, logits),
        min(options.num_candidates, len(vocabulary)),
    )
    wants_end = ops.equal(ids[:, :, 0], options.end_id)
    # What is forced, be it forbidden elsewhere, is offered once and alone.
    forced = forced[:, None, None]
    is_forced = ops.equal(vocabulary, forced)
    value = ops.max(ops.where(is_forced, logits, IMPOSSIBLE), -1, keepdims=True)
    value = ops.where(np.arange(ids.shape[-1]) == 0, value, IMPOSSIBLE)
    is_free = ops.equal(forced, options.padding_id)
    values = ops.where(is_free, values, value)
    ids = ops.where(is_free, ops.cast(ids, "int32"), forced)
    normalizer = ops.logsumexp(logits, axis=-1, keepdims=True)
    return values - normalizer, ids, wants_end


def rank_candidates(beams, values, last_ids, wants_end, at_limit, options):
    """Returns the `Candidates`: the best of what all beams offer."""
    offered = values.shape[-1]
    totals = beams.log_probabilities[:, :, None] + values
    totals = ops.reshape(totals, [-1, options.beam_size * offered])
    last_ids = ops.reshape(last_ids, [-1, options.beam_size * offered])
    best = find_best(totals, options.num_candidates)
    parents = ops.floor_divide(best, offered)
    last_ids = take_beams(last_ids, best)
    is_new = ops.equal(ops.arange(ops.shape(beams.ids)[2]), beams.index)
    ids = take_beams(beams.ids, parents)
    wanted = take_beams(wants_end, parents)
    return Candidates(
        ids=ops.where(is_new, last_ids[:, :, None], ids),
        last_ids=last_ids,
        log_probabilities=take_beams(totals, best),
        parents=parents,
        truncated=ops.logical_and(at_limit[:, None], ops.logical_not(wanted)),
    )


def add_ended(beams, candidates, alpha, options):
    """Returns the finished hypotheses, with the candidates that end here."""
    length = beams.index + 1
    scores = candidates.log_probabilities
    scores = scores / length_penalty_of(length, alpha)[:, None]
    ended = ops.equal(candidates.last_ids, options.end_id)
    new = Hypotheses(
        ids=candidates.ids,
        scores=ops.where(ended, scores, IMPOSSIBLE),
        lengths=ops.broadcast_to(length, ops.shape(ended)),
        truncated=candidates.truncated,
    )
    both = [
        ops.concatenate(pair, axis=1)
        for pair in zip(beams.finished, new, strict=True)
    ]
    best = find_best(both[1], options.num_returned)
    return Hypotheses(*[take_beams(x, best) for x in both])


def keep_live(beams, candidates, model_state, options):
    """Returns the next `BeamState`: the best candidates that do not end."""
    ended = ops.equal(candidates.last_ids, options.end_id)
    alive = ops.where(ended, IMPOSSIBLE, candidates.log_probabilities)
    best = find_best(alive, options.beam_size)
    parents = take_beams(candidates.parents, best)

    def follow(x):
        if len(x.shape) == 0:
            return x
        rows, *rest = ops.shape(x)
        size = options.beam_size
        x = ops.reshape(x, [rows // size, size, *rest])
        return ops.reshape(take_beams(x, parents), [rows, *rest])

    return beams._replace(
        index=beams.index + 1,
        ids=take_beams(candidates.ids, best),
        last_ids=take_beams(candidates.last_ids, best),
        log_probabilities=take_beams(alive, best),
        model_state=keras.tree.map_structure(follow, model_state),
    )


def may_improve(beams, limits, alpha):
    """Tells of which sentences a live hypothesis can join the finished."""
    largest_penalty = ops.maximum(
        length_penalty_of(beams.index + 1, alpha),
        length_penalty_of(limits, alpha),
    )
    hope = beams.log_probabilities[:, 0] / largest_penalty
    # A tie changes nothing: of equals, the earlier is kept.
    return ops.greater(hope, beams.finished.scores[:, -1])


def clear_empty(hypotheses, options):
    """Writes padding, and nothing else, where there is no hypothesis."""
    filled = ops.greater(hypotheses.scores, IMPOSSIBLE)
    return hypotheses._replace(
        ids=ops.where(filled[:, :, None], hypotheses.ids, options.padding_id),
        lengths=ops.where(filled, hypotheses.lengths, 0),
        truncated=ops.logical_and(filled, hypotheses.truncated),
    )


def find_best(scores, count):
    """Returns the places of the highest, `(B, count)`; of equals, the first.

    With torch, `ops.top_k` takes any of equals.
    """
    return ops.argsort(ops.negative(scores), axis=1)[:, :count]


def take_beams(x, places):
    """Takes `x[b, places[b, m]]`: `(B, M, ...)` from `(B, K, ...)`."""
    batch, count, *rest = ops.shape(x)
    rows = places + count * ops.arange(batch, dtype="int32")[:, None]
    return ops.take(ops.reshape(x, [batch * count, *rest]), rows, axis=0)
