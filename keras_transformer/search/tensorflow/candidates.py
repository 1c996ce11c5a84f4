"""Selects the best continuations of hypotheses, in TensorFlow.

Axes: `B` sentences, `K` beams, `C` candidates, `M` offers of a beam, `V`
vocabulary, `L` the longest limit.
"""

import tensorflow as tf

from keras_transformer.search.beam_step import BeamState, Candidates, mask_forbidden
from keras_transformer.search.options import IMPOSSIBLE
from keras_transformer.search.sampling import sample_tokens

TOP_K_BLOCK_SIZE = 32  # Logits of a block; blocks are ranked by their maxima.
# Forbidden ids that are ranked and skipped; more are masked.
MAX_SKIPPED_IDS = 8


def find_continuations(logits, active, index, step_tensors, options, count):
    """Returns the `Candidates`: the `count` best continuations of all beams.

    Each beam contributes its `count` best continuations, and as many more as
    there are forbidden ids. `K + 1` would suffice for the active hypotheses;
    but the rank of the finished ones is known only with all others.
    """
    logits = tf.cast(logits, tf.float32)
    allowed, skipped = logits, options.never_chosen
    sampling, constraints = step_tensors.sampling, step_tensors.constraints
    if sampling or constraints or len(skipped) > MAX_SKIPPED_IDS:
        beams = BeamState(index, *active, finished=(), model_state=())
        shape = [-1, options.beam_size, logits.shape[1]]
        allowed = mask_forbidden(tf.reshape(logits, shape), beams, constraints, options)
        allowed, skipped = tf.reshape(allowed, tf.shape(logits)), ()
    if sampling:
        values, ids = sample_tokens(allowed, index, sampling)
    else:
        values, ids = blockwise_top_k(allowed, count + len(skipped))  # (B * K, M)
    # The normalizer includes forbidden tokens.
    best = tf.reduce_max(values if allowed is logits else logits, axis=1, keepdims=True)
    normalizer = best + tf.math.log(
        tf.reduce_sum(tf.exp(logits - best), axis=1, keepdims=True)
    )
    forced = tf.gather(step_tensors.forced_ids, index)  # (B * K, 1)
    forced_logits = forced_values = tf.gather(logits, forced, batch_dims=1)
    if options.unscored_prefix:
        is_scored = index >= options.unscored_prefix
        forced_values = tf.where(is_scored, forced_logits, normalizer)
    if skipped:
        never = tf.constant(skipped, tf.int32)
        is_skipped = tf.reduce_any(tf.expand_dims(ids, 2) == never, axis=2)
        values = tf.where(is_skipped, IMPOSSIBLE, values)
    # At the limit, where the end is forced: is there a better choice?
    if sampling:
        truncated = ids != options.eos_id
    else:
        truncated = forced_logits < tf.reduce_max(values, axis=1, keepdims=True)
    # A forced token is the only candidate.
    is_free = forced == options.padding_id
    is_first = tf.range(tf.shape(ids)[1]) == 0
    values = tf.where(is_free, values, tf.where(is_first, forced_values, IMPOSSIBLE))
    ids = tf.where(is_free, ids, forced)
    values += tf.reshape(active.log_probabilities, [-1, 1]) - normalizer
    offered = tf.shape(ids)[1]
    shape = [-1, options.beam_size * offered]
    totals, best = tf.math.top_k(tf.reshape(values, shape), count)
    parents = best // offered
    truncated = tf.reshape(truncated, [-1, options.beam_size])
    truncated &= tf.gather(step_tensors.at_limit, index)  # (B, K)
    last_ids = tf.gather(tf.reshape(ids, shape), best, batch_dims=1)
    before = tf.gather(active.ids, parents, batch_dims=1)  # (B, C, L)
    is_new = tf.range(tf.shape(before)[2]) == index
    return Candidates(
        tf.where(is_new, tf.expand_dims(last_ids, 2), before),
        last_ids,
        totals,
        parents,
        tf.gather(truncated, parents, batch_dims=1),
    )


def blockwise_top_k(logits, count):
    """Finds the `count` largest of each row, or all; of equal ones, the first.

    They lie in the blocks with the largest maxima, and there are fewer blocks
    than logits to rank. Returns their values and their indices.
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
    block_indices = tf.gather(block_indices, best // TOP_K_BLOCK_SIZE, batch_dims=1)
    ids = block_indices * TOP_K_BLOCK_SIZE + best % TOP_K_BLOCK_SIZE
    # Added ids are impossible, but no model has an embedding for them.
    return values, tf.minimum(ids, width - 1)
