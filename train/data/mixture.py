"""Selects the pairs of a weighted mixture for a pass over it."""

import fractions

import numpy as np


def count_chosen(count: int, weight: fractions.Fraction) -> int:
    """Returns the number of pairs in a pass, at least one."""
    return max(1, round(weight * int(count))) if count else 0


def choose_pairs(
    pairs: np.ndarray,
    weight: fractions.Fraction,
    pass_index: int,
    seed: tuple[int, ...],
) -> np.ndarray:
    """Returns the pairs of a pass, which follow those of the pass before.

    The order of all pairs depends only on the seed. After the last pair comes
    the first; with a weight above 1, a pass has a pair several times.
    """
    circle = np.random.default_rng(seed).permutation(pairs)
    count = count_chosen(len(pairs), weight)
    return np.resize(np.roll(circle, -pass_index * count), count)
