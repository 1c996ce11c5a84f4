"""Finds the formula of a table of position vectors.

A table may hold sines of Section 3.5, in one of two orders: alternating with
cosines, as in the paper, or in the first half of the features. Wavelengths and
the index of the first position differ between systems.
"""

from typing import NamedTuple

import numpy as np

from convert.marian_config import max_wavelength

# Stored in 16 bits, a table is this near to its formula.
TOLERANCE = 8e-3


class Sines(NamedTuple):
    """Parameters of a table of sines.

    Attributes:
        max_wavelength: Float, as of `SinePositionEncoding`.
        offset: Int, index of the first position.
        in_halves: Bool, whether all sines come before all cosines.
    """

    max_wavelength: float
    offset: int
    in_halves: bool


def find_sines(table: np.ndarray) -> Sines | None:
    """Returns the parameters of a table `(T, D)`, or `None` if it is learned.

    It has one row at least, and an even number of features, four at least.
    """
    found = {}
    for in_halves in (False, True):
        sines, cosines = split(table, in_halves)
        phases = np.arctan2(sines, cosines)
        # The fastest pair turns by 1 from each position to the next.
        offset = round(float(phases[0, 0]) % (2 * np.pi))
        for wavelength in find_wavelengths(phases, offset, table.shape[1]):
            candidate = Sines(wavelength, offset, in_halves)
            expected = make_table(candidate, *table.shape)
            found[candidate] = np.abs(table - expected).max()
    best = min(found, key=found.get)
    return best if found[best] < TOLERANCE else None


def find_wavelengths(phases: np.ndarray, offset: int, width: int) -> list:
    """Returns the wavelengths that a table may have.

    Args:
        phases: Float array `(T, D / 2)`, the angles modulo 2π.
        offset: Int, index of the first position.
        width: Int, `D`.
    """
    found = [1e4, max_wavelength(width)]
    # The slowest pair has made no whole turn in a short time.
    last = min(len(phases), 4) - 1 + offset
    angle = float(phases[last - offset, -1])
    if last > 0 and angle > 0:
        wavelength = (last / angle) ** (width / (width - 2))
        # Few digits, since it is measured; in 16 bits even fewer.
        found += [float(f"{wavelength:.{digits}g}") for digits in (1, 2, 3, 6)]
    return found


def split(table: np.ndarray, in_halves: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sines and the cosines of a table."""
    if in_halves:
        sines, cosines = np.split(table, 2, axis=1)
        return sines, cosines
    return table[:, ::2], table[:, 1::2]


def make_table(sines: Sines, length: int, width: int) -> np.ndarray:
    """Computes a table `(T, D)`."""
    rates = sines.max_wavelength ** (-np.arange(0, width, 2) / width)
    angles = (sines.offset + np.arange(length))[:, None] * rates
    parts = np.sin(angles), np.cos(angles)
    if sines.in_halves:
        return np.concatenate(parts, axis=1)
    return np.stack(parts, axis=-1).reshape(length, width)
