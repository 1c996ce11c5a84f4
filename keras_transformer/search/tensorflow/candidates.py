"""Selects the best continuations of hypotheses, in TensorFlow.

Axes: `B` sentences, `K` beams, `C` candidates, `M` offers of a beam, `V`
vocabulary, `L` the longest limit.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.constraints import apply_constraints
from keras_transformer.search.options import IMPOSSIBLE
from keras_transformer.search.sampling import sample_tokens

TOP_K_BLOCK_SIZE = 32  # Logits of a block; blocks are ranked by their maxima.
# Forbidden ids that are ranked and skipped; more are masked.
MAX_SKIPPED_IDS = 8


class Candidates(NamedTuple):
    """The best continuations of all beams of a sentence, best first."""

    parents: tf.Tensor  # (B, C) int32, the beam that each continues
    ids: tf.Tensor  # (B, C) int32, its last token
    log_probabilities: tf.Tensor  # (B, C) float32, of the whole of it
    truncated: tf.Tensor  # (B, C) bool, ended though it had a better choice


def rank_candidates(logits, active, index, step_tensors, options, count):
    """Finds the `count` best continuations of the active hypotheses.

    Each beam contributes its `count` best continuations, and as many more as
    there are forbidden ids. `K + 1` would suffice for the active hypotheses;
    but the rank of the finished ones is known only with all others.
    """
    logits = tf.cast(logits, tf.float32)
    allowed, num_forbidden = mask_forbidden(
        logits, active, index, step_tensors, options
    )
    if step_tensors.sampling:
        values, ids = sample_tokens(allowed, index, step_tensors.sampling)
    else:
        values, ids = blockwise_top_k(allowed, count + num_forbidden)  # (B * K, M)
    # The normalizer includes forbidden tokens.
    top = values if allowed is logits else logits
    best = tf.reduce_max(top, axis=1, keepdims=True)
    normalizer = best + tf.math.log(
        tf.reduce_sum(tf.exp(logits - best), axis=1, keepdims=True)
    )
    forced = tf.gather(step_tensors.forced_ids, index)  # (B * K, 1)
    forced_logits = tf.gather(logits, forced, batch_dims=1)
    if num_forbidden:
        never = tf.constant(options.never_chosen, tf.int32)
        forbidden = tf.reduce_any(tf.expand_dims(ids, 2) == never, axis=2)
        values = tf.where(forbidden, IMPOSSIBLE, values)
    # At the limit, where the end is forced: is there a better choice?
    if step_tensors.sampling:
        truncated = ids != options.eos_id
    else:
        truncated = forced_logits < tf.reduce_max(values, axis=1, keepdims=True)
    # A forced token is the only candidate.
    is_free = forced == options.padding_id
    is_first = tf.range(tf.shape(ids)[1]) == 0
    values = tf.where(is_free, values, tf.where(is_first, forced_logits, IMPOSSIBLE))
    ids = tf.where(is_free, ids, forced)
    values += tf.reshape(active.log_probabilities, [-1, 1]) - normalizer
    offered = tf.shape(ids)[1]
    shape = [-1, options.beam_size * offered]
    totals, best = tf.math.top_k(tf.reshape(values, shape), count)
    parents = best // offered
    truncated = tf.reshape(truncated, [-1, options.beam_size])
    truncated &= tf.gather(step_tensors.at_limit, index)  # (B, K)
    truncated = tf.gather(truncated, parents, batch_dims=1)
    return Candidates(
        parents,
        tf.gather(tf.reshape(ids, shape), best, batch_dims=1),
        totals,
        truncated,
    )


def mask_forbidden(logits, active, index, step_tensors, options):
    """Sets the logits of tokens that are not allowed to -inf.

    Returns:
        Logits `(B * K, V)`, and an int: the number of forbidden ids that are
        not masked, as they are few; the caller must skip them.
    """
    num_forbidden = len(options.never_chosen)
    if (
        num_forbidden <= MAX_SKIPPED_IDS
        and not step_tensors.constraints
        and not step_tensors.sampling
    ):
        return logits, num_forbidden
    allowed = logits + forbidden_bias(logits, options)
    if step_tensors.constraints:
        previous = tf.reshape(active.ids, [-1, tf.shape(active.ids)[2]])
        allowed = apply_constraints(
            allowed, step_tensors.constraints, previous, index, options
        )
    return allowed, 0


def forbidden_bias(logits, options):
    """Returns -inf where a token is forbidden, and 0 elsewhere, `(V,)`."""
    ids = tf.constant(options.never_chosen, tf.int32)[:, None]
    infinite = tf.fill([len(options.never_chosen)], IMPOSSIBLE)
    return tf.scatter_nd(ids, infinite, tf.shape(logits)[1:])


def blockwise_top_k(logits, count):
    """Finds the `count` largest of each row, or all; of equal ones, the first.

    They lie in the blocks with the largest maxima, and there are fewer blocks
    than logits to rank.

    Returns:
        Their values and their indices, both `(rows, count)`.
    """
    width = logits.shape[1] or tf.shape(logits)[1]
    missing = -width % TOP_K_BLOCK_SIZE
    if not isinstance(missing, int) or missing:
        ends = [[0, 0], [0, missing]]
        logits = tf.pad(logits, ends, constant_values=IMPOSSIBLE)
    num_blocks = (width + missing) // TOP_K_BLOCK_SIZE
    blocks = tf.reshape(logits, [-1, num_blocks, TOP_K_BLOCK_SIZE])
    few = tf.minimum(count, num_blocks)
    _, block_indices = tf.math.top_k(tf.reduce_max(blocks, axis=2), few)
    # Sort the blocks, so that ties keep their order.
    block_indices = -tf.math.top_k(-block_indices, few)[0]
    logits = tf.gather(blocks, block_indices, batch_dims=1)
    logits = tf.reshape(logits, [-1, few * TOP_K_BLOCK_SIZE])
    values, best = tf.math.top_k(logits, tf.minimum(count, few * TOP_K_BLOCK_SIZE))
    ids = (
        tf.gather(block_indices, best // TOP_K_BLOCK_SIZE, batch_dims=1)
        * TOP_K_BLOCK_SIZE
        + best % TOP_K_BLOCK_SIZE
    )
    # Added ids are impossible, but no model has an embedding for them.
    return values, tf.minimum(ids, width - 1)
