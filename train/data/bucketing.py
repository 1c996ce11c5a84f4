"""Chooses batch shapes: sentences, padded lengths and micro-batches."""

import itertools
import math

import numpy as np

ROW_MULTIPLE = 8


def choose_row_multiple(num_replicas: int) -> int:
    """Returns the least common multiple of 8 and the number of replicas."""
    return math.lcm(ROW_MULTIPLE, num_replicas)


def sentences_in_batch(batch_tokens: int, length: int, row_multiple: int) -> int:
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
        limit: Int, maximum positions of a side in a micro-batch, unless it is a
            single sentence; or `None`.
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
    """Chooses at most `count` padded lengths that minimize the padding.

    They ascend; the last is the greatest of `lengths`, which are at least 1.
    """
    histogram = np.bincount(lengths)
    # Only lengths that occur are worth a boundary.
    ends = np.concatenate([[0], np.flatnonzero(histogram)])
    sequences = np.cumsum(histogram)[ends]
    # costs[i]: fewest positions that hold all sequences up to `ends[i]`, and
    # chosen[k][i]: the boundary before i when k boundaries were used.
    costs = np.full(len(ends), np.iinfo(np.int64).max // 2)
    costs[0] = 0
    chosen = []
    for _ in range(count):
        previous = np.array(
            [
                np.argmin(costs[: i + 1] - sequences[: i + 1] * end)
                for i, end in enumerate(ends)
            ]
        )
        costs = costs[previous] + (sequences - sequences[previous]) * ends
        chosen.append(previous)
    boundaries, i = [], len(ends) - 1
    for previous in reversed(chosen):
        if i > previous[i]:
            boundaries.append(int(ends[i]))
        i = previous[i]
    return boundaries[::-1]
