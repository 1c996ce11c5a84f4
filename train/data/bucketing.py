"""Chooses batch shapes: sentences, padded lengths and micro-batches."""

import itertools
import math

import numpy as np

ROW_MULTIPLE = 8


def choose_row_multiple(num_replicas: int) -> int:
    """Returns the least common multiple of 8 and the number of replicas."""
    return math.lcm(ROW_MULTIPLE, num_replicas)


def sentences_in_batch(
    batch_tokens: int, length: int, row_multiple: int
) -> int:
    rows = batch_tokens // length // row_multiple * row_multiple
    return max(row_multiple, rows)


def count_micro_batches(
    shape: tuple[int, int, int], num_replicas: int, limit: int | None
) -> int:
    """Returns the number of micro-batches of a replica.

    It is the least number with which less than an eighth of the rows is
    padding.

    Args:
        shape: Sentences of the batch, and its two lengths.
        num_replicas: Int, replicas that share the sentences.
        limit: Int, maximum positions of a side in a micro-batch, or `None` for
            no limit. A micro-batch has at least one sentence.
    """
    if limit is None:
        return 1
    rows, *lengths = shape
    mine = -(-rows // num_replicas)
    least = -(-mine // max(1, limit // max(lengths)))
    return next(
        count
        for count in itertools.count(least)
        if 8 * (-(-mine // count) * count - mine) < mine
    )


def bucket_length_of(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns one length for each pair, which decides its shape.

    It is the length of the longer side, after the lengths of the language with
    more tokens in all are scaled down to those of the other.
    """
    ratio = np.float32(targets.sum() / sources.sum())
    if ratio < 1:
        sources, targets, ratio = targets, sources, 1 / ratio
    return np.maximum(sources, np.ceil(targets / ratio).astype(np.int32))


def longest_by_boundary(
    lengths: np.ndarray, sizes: np.ndarray, boundaries: list[int]
) -> list[int]:
    """Returns the greatest length up to each boundary."""
    longest = np.zeros(boundaries[-1] + 1, lengths.dtype)
    np.maximum.at(longest, sizes, lengths)
    return np.maximum.accumulate(longest)[boundaries].tolist()


def choose_boundaries(lengths: np.ndarray, count: int) -> list[int]:
    """Chooses the padded lengths that minimize the padding.

    Args:
        lengths: Int array of sequence lengths, each at least 1.
        count: Int, maximum number of boundaries.

    Returns:
        Ascending list of ints; the last is the greatest length.
    """
    histogram = np.bincount(lengths)
    sequences = np.cumsum(histogram)
    longest = len(histogram) - 1
    # cost[i]: fewest positions that hold all sequences of length <= i, and
    # chosen[k][i]: the boundary before i when k boundaries were used.
    cost = np.where(np.arange(longest + 1) > 0, np.inf, 0.0)
    chosen = []
    ends = np.arange(longest + 1)
    # added[i, j]: positions of everything in (j, i], padded to i.
    added = (sequences[:, None] - sequences[None, :]) * ends[:, None]
    for _ in range(count):
        candidates = cost[None, :] + added  # Boundary j < i, then i.
        candidates[ends[:, None] < ends[None, :]] = np.inf
        chosen.append(np.argmin(candidates, axis=1))
        cost = np.min(candidates, axis=1)
    boundaries, end = [], longest
    for previous in reversed(chosen):
        if end > previous[end]:
            boundaries.append(int(end))
        end = previous[end]
    return boundaries[::-1]
