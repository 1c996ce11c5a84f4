"""Beam search on every backend of Keras (Vaswani et al., 2017, Section 6.1).

Axes: `B` sentences, `K` beams, `N` hypotheses returned, `V` vocabulary, `L`
capacity in tokens, at least the longest limit.
"""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_transformer.search.beam_step import (
    add_finished,
    best_tokens,
    forced_tokens,
    keep_active,
    mask_forbidden,
    may_improve,
    pad_missing,
    rank_candidates,
    start,
)
from keras_transformer.search.constraints import constraint_tensors
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.search_result import Hypotheses


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
