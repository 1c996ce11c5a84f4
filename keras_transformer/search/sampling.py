"""Samples sequences from a model, with temperature, top-k and top-p.

Sampling is not in the paper. Back-translation uses it: sampled sources improve
a model more than those of beam search (Edunov et al., 2018).

The random number of a token is a hash of the sentence's seed and the token's
position. So a sample depends only on its seed and its source, not on the other
sentences of the batch.

Axes: `B` sentences, `V` vocabulary, `M` positions to choose from.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras import ops

from keras_transformer.search.beam_search import search
from keras_transformer.search.options import IMPOSSIBLE, SearchOptions
from keras_transformer.search.search_result import Hypotheses

SAMPLING_BLOCK_SIZE = 256  # Tokens of a block; a block is sampled first.
NUM_RANKED_FIRST = 128  # Tokens that are ranked first, which usually suffices.


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Options of sampling.

    Attributes:
        seeds: Int32 tensor `(B,)`.
        temperature: Float above 0, or float32 tensor `(B,)`, the divisor of
            the logits: below 1, probable tokens become more probable.
        top_k: Int, or int32 tensor `(B,)`: sample among this number of most
            probable tokens, and ties with the last of them. 0 means all.
        top_p: Float above 0, or float32 tensor `(B,)`: of these, sample among
            the fewest most probable tokens whose total probability reaches
            `top_p` (Holtzman et al., 2020), and ties. 1 means all.

    Raises:
        ValueError: If a number is out of these ranges.
    """

    seeds: Any
    temperature: Any = 1.0
    top_k: Any = 0
    top_p: Any = 1.0

    def __post_init__(self):
        for name, wanted, is_good in (
            ("temperature", "above 0", lambda x: x > 0),
            ("top_k", "0 or more", lambda x: x >= 0),
            ("top_p", "above 0 and at most 1", lambda x: 0 < x <= 1),
        ):
            value = getattr(self, name)
            if isinstance(value, int | float) and not is_good(value):
                raise ValueError(f"`{name}` must be {wanted}. Received: {name}={value}")


def sample(
    next_step: Callable,
    initial_state: Any,
    options: SearchOptions,
    max_lengths: Any,
    sampling: Sampling,
    prefix_ids: Any = None,
    constants: tuple = (),
    max_length: Any = None,
) -> Hypotheses:
    """Samples a sequence for each sentence, token by token.

    A token is sampled from the model's probabilities of the allowed tokens,
    after `temperature`, `top_k` and `top_p`. The score is that of
    `beam_search`, from the original probabilities.

    Args:
        next_step: As in `beam_search`, with one beam.
        initial_state: As in `beam_search`.
        options: `SearchOptions`; beam size and number of hypotheses are taken
            as 1.
        max_lengths: Int32 tensor `(B,)`, at least 1.
        sampling: `Sampling`.
        prefix_ids: Int32 tensor `(B, P)`, padded.
        constants: As in `beam_search`.
        max_length: As in `beam_search`.

    Returns:
        `Hypotheses(ids, scores, lengths, truncated)`, one for each sentence.
        `truncated` means that another token than EOS was sampled at the limit.

    Example:
        >>> table = np.log([[0.1, 0.6, 0.1, 0.1, 0.1]])
        >>> hypotheses = sample(
        ...     next_step=lambda ids, index, state: (
        ...         keras.ops.repeat(table, len(ids), axis=0),
        ...         state,
        ...     ),
        ...     initial_state=(),
        ...     options=keras_transformer.SearchOptions(),
        ...     max_lengths=np.array([3]),
        ...     sampling=Sampling(seeds=np.array([1]), top_k=1),
        ... )
        >>> hypotheses.ids[0, 0]
        [1, 0, 0]
    """
    tensors = sampling_tensors(sampling, max_lengths)

    def choose(logits, index):
        values, ids = sample_tokens(logits[:, 0], index, tensors)
        return values[:, None], ids[:, None]

    return search(
        next_step,
        initial_state,
        with_one_beam(options),
        max_lengths,
        choose,
        prefix_ids,
        constants,
        max_length,
    )


def with_one_beam(options):
    """Returns `SearchOptions` with one beam and one hypothesis."""
    return dataclasses.replace(options, beam_size=1, num_hypotheses=1)


def sampling_tensors(sampling, limits):
    """Returns a dict of the options for each sentence, without those that are off."""
    defaults = Sampling(sampling.seeds)
    tensors = {"seeds": ops.cast(sampling.seeds, "int32")}
    for name, dtype in (
        ("temperature", "float32"),
        ("top_k", "int32"),
        ("top_p", "float32"),
    ):
        value = getattr(sampling, name)
        is_known = isinstance(value, int | float)
        if not is_known or value != getattr(defaults, name):
            value = ops.cast(value, dtype)
            tensors[name] = ops.broadcast_to(value, ops.shape(limits))
    return tensors


def sample_tokens(logits, index, tensors):
    """Returns the logits and the ids of the tokens of a position, both `(B, 1)`."""
    scaled = logits - ops.max(logits, axis=1, keepdims=True)
    if "temperature" in tensors:
        scaled = scaled / tensors["temperature"][:, None]
    weights = ops.exp(mask_unlikely(scaled, tensors))
    # First the block, then the token: a single sum would lose rare tokens.
    missing = -logits.shape[1] % SAMPLING_BLOCK_SIZE
    weights = ops.pad(weights, [[0, 0], [0, missing]])
    blocks = ops.reshape(
        weights, [-1, weights.shape[1] // SAMPLING_BLOCK_SIZE, SAMPLING_BLOCK_SIZE]
    )
    first, second = uniform_numbers(tensors["seeds"], index)
    block = sample_index(ops.sum(blocks, axis=2), first)
    block_weights = ops.take_along_axis(blocks, block[:, :, None], axis=1)
    ids = block * SAMPLING_BLOCK_SIZE + sample_index(block_weights[:, 0], second)
    return ops.take_along_axis(logits, ids, axis=1), ids


def mask_unlikely(logits, tensors):
    """Applies top-k and top-p to logits `(B, V)`: other logits become -inf."""
    if not {"top_k", "top_p"} & set(tensors):
        return logits
    size = logits.shape[1]
    off = ops.zeros_like(tensors["seeds"])
    top_k = tensors.get("top_k", off)[:, None]
    top_k = ops.where(top_k > 0, ops.minimum(top_k, size), size)
    top_p = tensors.get("top_p", ops.ones_like(off, "float32"))[:, None]
    is_free = ops.logical_and(top_k == size, top_p >= 1)

    def find():
        # Sorting all tokens is slow and rarely needed. Without top-k and top-p
        # no ranking is needed.
        least, is_enough = find_threshold(
            logits, top_k, top_p, min(NUM_RANKED_FIRST, size)
        )
        if size <= NUM_RANKED_FIRST:
            return least
        is_enough = ops.all(ops.logical_or(is_enough, is_free))
        return ops.cond(
            is_enough,
            lambda: least,
            lambda: find_threshold(logits, top_k, top_p, size)[0],
        )

    least = ops.cond(ops.all(is_free), lambda: ops.zeros_like(top_p), find)
    is_kept = ops.logical_or(is_free, logits >= least)
    return ops.where(is_kept, logits, IMPOSSIBLE)


def find_threshold(logits, top_k, top_p, num_ranked):
    """Finds the smallest logit that `top_k` and `top_p` keep, `(B, 1)`.

    Ranks `num_ranked` of the logits, whose maximum is 0; also returns whether
    these were sufficient, bool `(B, 1)`.
    """
    ordered, _ = ops.top_k(logits, num_ranked)
    is_in = ops.arange(num_ranked) < top_k
    weights = ops.where(is_in, ops.exp(ordered), 0.0)
    total = ops.sum(weights, axis=1, keepdims=True)
    whole = ops.sum(ops.exp(logits), axis=1, keepdims=True)
    has_count = top_k < logits.shape[1]
    wanted = top_p * ops.where(has_count, total, whole)
    sums = ops.cumsum(weights, axis=1)
    is_wanted = ops.logical_or(sums - weights < wanted, top_p >= 1)
    is_in = ops.logical_and(is_in, is_wanted)
    is_in = ops.logical_and(is_in, ordered > IMPOSSIBLE)
    least = ops.where(is_in, ordered, -IMPOSSIBLE)
    least = ops.min(least, axis=1, keepdims=True)
    return least, ops.where(has_count, top_k <= num_ranked, sums[:, -1:] > wanted)


def sample_index(weights, chances):
    """Samples an index `(B, 1)` with probability proportional to its weight.

    `chances` `(B,)` are random numbers, from 0 to below 1.
    """
    sums = ops.cumsum(weights, axis=1)
    has_weight = weights > 0
    total = ops.max(ops.where(has_weight, sums, 0.0), axis=1)
    is_beyond = sums > (chances * total)[:, None]
    is_beyond = ops.logical_and(is_beyond, has_weight)
    indices = ops.argmax(ops.cast(is_beyond, "int32"), axis=1)
    return ops.cast(indices, "int32")[:, None]


def uniform_numbers(seeds, index):
    """Returns two random numbers in [0, 1) for each seed: float32 `(B,)`."""
    keys = hash_bits(seeds + as_int32(0x9E3779B9))
    return tuple(
        ops.cast(logical_shift_right(bits, 8), "float32") / 2**24
        for bits in (
            hash_bits(ops.bitwise_xor(keys, hash_bits(2 * index + 1))),
            hash_bits(ops.bitwise_xor(keys, hash_bits(2 * index + 2))),
        )
    )


def hash_bits(x):
    """Returns MurmurHash3's 32-bit finalizer of a number."""
    x = ops.bitwise_xor(x, logical_shift_right(x, 16)) * as_int32(0x85EBCA6B)
    x = ops.bitwise_xor(x, logical_shift_right(x, 13)) * as_int32(0xC2B2AE35)
    return ops.bitwise_xor(x, logical_shift_right(x, 16))


def logical_shift_right(x, count):
    """Logical right shift of int32."""
    return ops.bitwise_and(ops.right_shift(x, count), 2 ** (32 - count) - 1)


def as_int32(bits):
    """Returns the signed int with the same 32 bits."""
    return bits - 2**32 * (bits >> 31)
