"""Selects the pairs of a weighted mixture for an epoch."""

import fractions

import numpy as np


def count_drawn(count: int, weight: fractions.Fraction) -> int:
    """Returns how many of some pairs an epoch takes: one at least."""
    return max(1, round(weight * int(count))) if count else 0


def choose_pairs(
    pairs: np.ndarray,
    weight: fractions.Fraction,
    epoch: int,
    seed: tuple[int, ...],
) -> np.ndarray:
    """Returns the pairs of an epoch, which begin where those before ended.

    They lie on a circle in an order that hangs on the seed alone; above a
    weight of 1, an epoch goes round it more than once.
    """
    circle = np.random.default_rng(seed).permutation(pairs)
    count = count_drawn(len(pairs), weight)
    return np.resize(np.roll(circle, -epoch * count), count)
