"""Beam search on every backend of Keras (Vaswani et al., 2017, Section 6.1).

Axes: `B` sentences, `K` beams, `C` candidates, `N` hypotheses returned, `V`
vocabulary, `L` capacity in tokens, at least the longest limit.
"""

import numpy as np
from keras import ops

from keras_transformer.search.beam_steps import BeamState
from keras_transformer.search.beam_steps import Hypotheses
from keras_transformer.search.beam_steps import add_finished
from keras_transformer.search.beam_steps import best_tokens
from keras_transformer.search.beam_steps import keep_active
from keras_transformer.search.beam_steps import mask_forbidden
from keras_transformer.search.beam_steps import rank_candidates
from keras_transformer.search.constraints import constraint_tensors
from keras_transformer.search.options import IMPOSSIBLE
from keras_transformer.search.options import length_penalty_of


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
        count = min(options.num_candidates, logits.shape[-1])
        return ops.top_k(logits, count)

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
    rules = {
        name: ops.repeat(rule, options.beam_size)
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
        allowed = mask_forbidden(logits, beams, rules, options)
        values, ids = choose(allowed, beams.index)
        forced = ops.take(forced_ids, beams.index, axis=1)
        offers = best_tokens(logits, values, ids, forced, options)
        at_limit = ops.equal(beams.index + 1, limits)
        candidates = rank_candidates(beams, *offers, at_limit, options)
        finished = add_finished(beams, candidates, alpha, options)
        beams = keep_active(beams, candidates, model_state, options)
        return (beams._replace(finished=finished),)

    beams = start(initial_state, ops.shape(limits)[0], max_length, options)
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


def pad_missing(hypotheses, options):
    """Replaces missing hypotheses by padding."""
    filled = ops.greater(hypotheses.scores, IMPOSSIBLE)
    return hypotheses._replace(
        ids=ops.where(filled[:, :, None], hypotheses.ids, options.padding_id),
        lengths=ops.where(filled, hypotheses.lengths, 0),
        truncated=ops.logical_and(filled, hypotheses.truncated),
    )
