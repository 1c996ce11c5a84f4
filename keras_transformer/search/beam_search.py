"""Beam search on every backend of Keras (Vaswani et al., 2017, Section 6.1).

Axes: `B` sentences, `K` beams, `C` candidates, `N` hypotheses returned, `V`
vocabulary, `L` capacity in tokens, at least the longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.search.constraints import apply_constraints, constraint_tensors
from keras_transformer.search.options import (
    IMPOSSIBLE,
    SearchOptions,
    length_penalty_of,
)
from keras_transformer.search.search_result import Hypotheses


class Candidates(NamedTuple):
    """Continuations of a sentence's beams, best first."""

    ids: Any  # (B, C, L) int32
    last_ids: Any  # (B, C) int32, the tokens that are new
    log_probabilities: Any  # (B, C) float32, -inf where there is none
    parents: Any  # (B, C) int32, the beam that each continues
    truncated: Any  # (B, C) bool, ended though it had a better choice


class BeamState(NamedTuple):
    """Variables of the search loop."""

    index: Any  # () int32, the position of the tokens to come
    ids: Any  # (B, K, L) int32, active hypotheses
    last_ids: Any  # (B, K) int32, what the model is given next
    log_probabilities: Any  # (B, K) float32, -inf where one is not active
    finished: Hypotheses  # (B, N, ...), best first
    model_state: Any  # (B * K, ...) or ()


def beam_search(
    next_step: Callable,
    initial_state: Any,
    options: SearchOptions,
    max_lengths: Any,
    prefix_ids: Any = None,
    constants: tuple = (),
    max_length: Any = None,
) -> Hypotheses:
    """Finds the target sequences of the highest normalized log-probability.

    The score of a hypothesis of `n` tokens, including EOS, is
    `log p / ((5 + n) / 6) ** length_penalty` (Wu et al., 2016, equation 14).
    Each step ranks the continuations of the active hypotheses of a sentence and
    takes the best `2 K`, as the paper's authors do in tensor2tensor. Those that
    end in EOS become finished hypotheses; the best `K` of the others stay
    active. There are always `K`, as a beam has only one continuation by EOS.

    A sentence is complete when no active hypothesis can become one of its `N`
    best. Log-probabilities only decrease, so an active hypothesis of `log p`
    scores at most `log p` divided by the largest penalty to come, which is the
    first if `length_penalty` is negative and the last otherwise. Sentences are
    independent, so a result does not depend on the batch.

    With `beam_size=1` this is greedy search: it takes the most probable
    continuation until that is EOS. With a beam that holds every sequence the
    search is exhaustive.

    Args:
        next_step: Function `(ids, index, state, *constants) -> (logits,
            state)`. `ids` is int32 `(B * K,)`, the last token of each
            hypothesis, `bos_id` at `index` 0; `index` is an int32 scalar,
            its position. `logits` are float `(B * K, V)`, `V` known. Row
            `b * K + k` is beam `k` of sentence `b`.
        initial_state: The `state` of the first step: a nested structure of
            tensors. Those with `B * K` rows are reordered with the
            hypotheses; those of rank 0 are shared by all and unchanged.
        options: `SearchOptions`.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            sentence, in tokens with EOS (source length + 50 in the paper).
            Hypotheses that are active at the limit end there with EOS, whose
            log-probability counts.
        prefix_ids: Int32 tensor `(B, P)`, padded: the first tokens of a
            sentence's hypotheses; their log-probabilities count. A prefix must
            be shorter than the limit.
        constants: Tuple of further arguments of `next_step`.
        max_length: Int, `L`, at least the largest limit, so that all shapes are
            known. `None` means the largest limit, which must have a concrete
            value, as it has outside of compiled functions.

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

    def choose(logits, index):
        # `K + 1` would suffice for the active hypotheses. But the rank of the
        # finished ones among the best `2 K` is known only with all others.
        batch, beams, size = ops.shape(logits)
        count = min(options.num_candidates, size)
        # Of rank 2: on a CPU, JAX takes many times as long for rank 3.
        values, ids = ops.top_k(ops.reshape(logits, [-1, size]), count)
        shape = [batch, beams, count]
        return ops.reshape(values, shape), ops.reshape(ids, shape)

    return search(
        next_step,
        initial_state,
        options,
        max_lengths,
        choose,
        prefix_ids,
        constants,
        max_length,
    )


def search(
    next_step,
    initial_state,
    options,
    max_lengths,
    choose,
    prefix_ids,
    constants,
    max_length,
):
    """Implements `beam_search` and `sample`.

    Args:
        choose: Function `(logits, index) -> (values, ids)`, all `(B, K, …)`:
            the tokens with which a beam may continue, best first, and their
            logits, -inf for forbidden ones.
    """
    limits = ops.cast(max_lengths, "int32")
    if max_length is None:
        max_length = int(ops.max(limits, initial=1))
    limits = ops.minimum(limits, max_length)
    alpha = ops.convert_to_tensor(options.length_penalty, "float32")
    alpha = ops.broadcast_to(alpha, ops.shape(limits))
    offset = options.penalty_offset
    forced_ids = forced_tokens(limits, prefix_ids, max_length, options)
    constraints = {
        name: ops.repeat(rule, options.beam_size, axis=0)
        for name, rule in constraint_tensors(options, limits).items()
    }

    def is_running(beams):
        return ops.any(may_improve(beams, limits, alpha, offset))

    def take_step(beams):
        logits, model_state = next_step(
            ops.reshape(beams.last_ids, [-1]),
            beams.index,
            beams.model_state,
            *constants,
        )
        logits = ops.cast(logits, "float32")
        shape = [-1, options.beam_size, logits.shape[-1]]
        logits = ops.reshape(logits, shape)
        allowed = mask_forbidden(logits, beams, constraints, options)
        values, ids = choose(allowed, beams.index)
        forced = ops.take(forced_ids, beams.index, axis=1)
        is_scored = ops.greater_equal(beams.index, options.unscored_prefix)
        offers = best_tokens(logits, values, ids, forced, is_scored, options)
        at_limit = ops.equal(beams.index + 1, limits)
        candidates = rank_candidates(beams, *offers, at_limit, options)
        finished = add_finished(beams, candidates, alpha, options)
        beams = keep_active(beams, candidates, model_state, options)
        return (beams._replace(finished=finished),)

    batch = ops.shape(limits)[0]
    beams = start(initial_state, batch, max_length, options)
    if isinstance(batch, int) and batch == 0:  # JAX would trace a step.
        return beams.finished
    (beams,) = ops.while_loop(is_running, take_step, (beams,))
    return pad_missing(beams.finished, options)


def forced_tokens(limits, prefix_ids, max_length, options):
    """Returns the forced tokens, `(B, L)`, and padding elsewhere."""
    shape = (ops.shape(limits)[0], max_length)
    forced_ids = ops.full(shape, options.padding_id, "int32")
    if prefix_ids is not None:
        prefix_ids = ops.cast(prefix_ids, "int32")
        forced_ids = ops.concatenate([prefix_ids, forced_ids], axis=1)
        forced_ids = forced_ids[:, :max_length]
    is_last = ops.equal(ops.arange(max_length), limits[:, None] - 1)
    return ops.where(is_last, options.eos_id, forced_ids)


def start(initial_state, batch, max_length, options):
    """Returns the initial `BeamState`, one hypothesis for each sentence."""
    live, returned = options.beam_size, options.num_returned
    # If all beams were active, they would stay equal.
    alive = np.array([0.0] + [IMPOSSIBLE] * (live - 1), "float32")
    padding = options.padding_id
    return BeamState(
        index=ops.convert_to_tensor(0, "int32"),
        ids=ops.full((batch, live, max_length), padding, "int32"),
        last_ids=ops.full((batch, live), options.bos_id, "int32"),
        log_probabilities=ops.broadcast_to(alive, (batch, live)),
        finished=Hypotheses(
            ids=ops.full((batch, returned, max_length), padding, "int32"),
            scores=ops.full((batch, returned), IMPOSSIBLE, "float32"),
            lengths=ops.zeros((batch, returned), "int32"),
            truncated=ops.zeros((batch, returned), "bool"),
        ),
        model_state=initial_state,
    )


def may_improve(beams, limits, alpha, offset):
    """Returns for which sentences an active hypothesis can still win."""
    largest_penalty = ops.maximum(
        length_penalty_of(beams.index + 1, alpha, offset),
        length_penalty_of(limits, alpha, offset),
    )
    best_possible_score = beams.log_probabilities[:, 0] / largest_penalty
    # On a tie, the earlier hypothesis is kept.
    return ops.greater(best_possible_score, beams.finished.scores[:, -1])


def mask_forbidden(logits, beams, constraints, options):
    """Returns logits `(B, K, V)`, -inf for forbidden tokens."""
    forbidden = np.isin(np.arange(logits.shape[-1]), options.never_chosen)
    allowed = ops.where(forbidden, IMPOSSIBLE, logits)
    if not constraints:
        return allowed
    rows = ops.reshape(allowed, [-1, logits.shape[-1]])
    ids = ops.reshape(beams.ids, [-1, ops.shape(beams.ids)[2]])
    rows = apply_constraints(rows, constraints, ids, beams.index, options)
    return ops.reshape(rows, ops.shape(logits))


def best_tokens(logits, values, ids, forced, is_scored, options):
    """Returns the best `C` next tokens of each beam, or the forced one.

    Args:
        logits: Float32 `(B, K, V)`, the output of the model.
        values: Float32 `(B, K, C)`, logits of the chosen tokens.
        ids: Ints `(B, K, C)`, the chosen tokens.
        forced: Int32 `(B,)`, the only choice, unless it is padding.
        is_scored: Bool, whether the log-probability of that choice counts.
        options: `SearchOptions`.

    Returns:
        Their log-probabilities and ids, `(B, K, C)`; and bool `(B, K)`,
        whether a beam would end if nothing were forced.
    """
    wants_end = ops.equal(ids[:, :, 0], options.eos_id)
    # A forced token is the only candidate, even if it is forbidden elsewhere.
    forced = forced[:, None, None]
    is_forced = ops.equal(np.arange(logits.shape[-1]), forced)
    value = ops.max(ops.where(is_forced, logits, IMPOSSIBLE), -1, keepdims=True)
    normalizer = ops.logsumexp(logits, axis=-1, keepdims=True)
    value = ops.where(is_scored, value, normalizer)
    value = ops.where(np.arange(ids.shape[-1]) == 0, value, IMPOSSIBLE)
    is_free = ops.equal(forced, options.padding_id)
    values = ops.where(is_free, values, value)
    ids = ops.where(is_free, ops.cast(ids, "int32"), forced)
    return values - normalizer, ids, wants_end


def rank_candidates(beams, values, last_ids, wants_end, at_limit, options):
    """Returns the `Candidates`: the best continuations of all beams."""
    offered = values.shape[-1]
    totals = beams.log_probabilities[:, :, None] + values
    totals = ops.reshape(totals, [-1, options.beam_size * offered])
    last_ids = ops.reshape(last_ids, [-1, options.beam_size * offered])
    best = top_k_indices(totals, options.num_candidates)
    parents = ops.floor_divide(best, offered)
    last_ids = gather_beams(last_ids, best)
    is_new = ops.equal(ops.arange(ops.shape(beams.ids)[2]), beams.index)
    ids = gather_beams(beams.ids, parents)
    wanted = gather_beams(wants_end, parents)
    return Candidates(
        ids=ops.where(is_new, last_ids[:, :, None], ids),
        last_ids=last_ids,
        log_probabilities=gather_beams(totals, best),
        parents=parents,
        truncated=ops.logical_and(at_limit[:, None], ops.logical_not(wanted)),
    )


def add_finished(beams, candidates, alpha, options):
    """Returns the finished hypotheses, with the candidates that end in EOS."""
    length = beams.index + 1
    scores = candidates.log_probabilities
    penalty = length_penalty_of(length, alpha, options.penalty_offset)
    scores = scores / penalty[:, None]
    ended = ops.equal(candidates.last_ids, options.eos_id)
    new = Hypotheses(
        ids=candidates.ids,
        scores=ops.where(ended, scores, IMPOSSIBLE),
        lengths=ops.broadcast_to(length, ops.shape(ended)),
        truncated=candidates.truncated,
    )
    both = [
        ops.concatenate(pair, axis=1) for pair in zip(beams.finished, new, strict=True)
    ]
    best = top_k_indices(both[1], options.num_returned)
    return Hypotheses(*[gather_beams(x, best) for x in both])


def keep_active(beams, candidates, model_state, options):
    """Returns the next `BeamState`: the best candidates that stay active."""
    ended = ops.equal(candidates.last_ids, options.eos_id)
    alive = ops.where(ended, IMPOSSIBLE, candidates.log_probabilities)
    best = top_k_indices(alive, options.beam_size)
    parents = gather_beams(candidates.parents, best)

    def reorder(x):
        if len(x.shape) == 0:
            return x
        rows, *rest = ops.shape(x)
        size = options.beam_size
        x = ops.reshape(x, [rows // size, size, *rest])
        return ops.reshape(gather_beams(x, parents), [rows, *rest])

    return beams._replace(
        index=beams.index + 1,
        ids=gather_beams(candidates.ids, best),
        last_ids=gather_beams(candidates.last_ids, best),
        log_probabilities=gather_beams(alive, best),
        model_state=keras.tree.map_structure(reorder, model_state),
    )


def top_k_indices(scores, count):
    """Returns the indices of the highest, `(B, count)`; of ties, the first.

    With torch, `ops.top_k` breaks ties arbitrarily.
    """
    return ops.argsort(ops.negative(scores), axis=1)[:, :count]


def gather_beams(x, indices):
    """Takes `x[b, indices[b, m]]`: `(B, M, ...)` from `(B, K, ...)`."""
    batch, count, *rest = ops.shape(x)
    rows = indices + count * ops.arange(batch, dtype="int32")[:, None]
    return ops.take(ops.reshape(x, [batch * count, *rest]), rows, axis=0)


def pad_missing(hypotheses, options):
    """Replaces missing hypotheses by padding."""
    filled = ops.greater(hypotheses.scores, IMPOSSIBLE)
    return hypotheses._replace(
        ids=ops.where(filled[:, :, None], hypotheses.ids, options.padding_id),
        lengths=ops.where(filled, hypotheses.lengths, 0),
        truncated=ops.logical_and(filled, hypotheses.truncated),
    )
