"""Selects the pairs of a weighted mixture for an epoch."""

import fractions

import numpy as np


def count_chosen(count: int, weight: fractions.Fraction) -> int:
    """Returns the number of pairs in an epoch, at least one."""
    return max(1, round(weight * int(count))) if count else 0


def choose_pairs(
    pairs: np.ndarray,
    weight: fractions.Fraction,
    epoch: int,
    seed: tuple[int, ...],
) -> np.ndarray:
    """Returns the pairs of an epoch, which follow those of the epoch before.

    The order of all pairs depends only on the seed. After the last pair comes
    the first; with a weight above 1, an epoch has a pair several times.
    """
    circle = np.random.default_rng(seed).permutation(pairs)
    count = count_chosen(len(pairs), weight)
    return np.resize(np.roll(circle, -epoch * count), count)
