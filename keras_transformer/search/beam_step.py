"""The parts of a step of beam search: candidates, finished and active hypotheses.

Axes: `B` sentences, `K` beams, `C` candidates, `N` hypotheses returned, `V`
vocabulary, `L` capacity in tokens, at least the longest limit.
"""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_transformer.search.constraints import apply_constraints
from keras_transformer.search.options import IMPOSSIBLE, length_penalty_of
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
