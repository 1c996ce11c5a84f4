"""Encoded sentence pairs: ids in flat arrays, which may be mapped from disk."""

import dataclasses
import fractions
import functools
from collections.abc import Iterator

import numpy as np

from keras_transformer.special_ids import PADDING_ID


@dataclasses.dataclass(frozen=True)
class Ids:
    """Id sequences of different lengths, concatenated.

    Attributes:
        flat: Int array of all ids; may be mapped from a file.
        offsets: Int array, one longer than there are sequences: sequence `i`
            is `flat[offsets[i] : offsets[i + 1]]`.
    """

    flat: np.ndarray
    offsets: np.ndarray

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Int32 array of the sequences' lengths."""
        return lengths_of(self.offsets)

    def pad(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns sequences `indices`, padded to an int32 `(n, length)`."""
        columns = np.arange(length)
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        real = columns < (ends - starts)[:, None]
        padded = np.full(real.shape, PADDING_ID, np.int32)
        padded[real] = self.flat[(starts[:, None] + columns)[real]]
        return padded

    def take(self, indices: np.ndarray) -> "Ids":
        """Returns the sequences `indices`, in that order."""
        lengths = self.lengths[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        starts = np.repeat(self.offsets[indices] - offsets[:-1], lengths)
        return Ids(self.flat[starts + np.arange(offsets[-1])], offsets)


def lengths_of(offsets: np.ndarray) -> np.ndarray:
    """Returns the lengths of sequences, without an array of int64."""
    lengths = np.empty(len(offsets) - 1, np.int32)
    np.subtract(offsets[1:], offsets[:-1], out=lengths, casting="unsafe")
    return lengths


@dataclasses.dataclass(frozen=True)
class JoinedIds:
    """The sequences of several `Ids`, concatenated without a copy."""

    parts: tuple[Ids, ...]

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Int32 array of the sequences' lengths."""
        # The cached lengths of the parts would stay in memory too.
        return np.concatenate([lengths_of(part.offsets) for part in self.parts])

    def pad(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns sequences `indices`, padded to an int32 `(n, length)`."""
        padded = np.full((len(indices), length), PADDING_ID, np.int32)
        start = 0
        for part in self.parts:
            end = start + len(part.offsets) - 1
            mine = (start <= indices) & (indices < end)
            padded[mine] = part.pad(indices[mine] - start, length)
            start = end
        return padded


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """Line-aligned id sequences; each ends in EOS.

    Attributes:
        sources: Ids of the sentences.
        targets: Ids of their translations.
        parts: Tuple of the number of pairs and the weight of each part, in
            order. The weight is the average number of times that a pass has
            a pair. `None` means one part of weight 1.
    """

    sources: Ids | JoinedIds
    targets: Ids | JoinedIds
    parts: tuple[tuple[int, fractions.Fraction], ...] | None = None

    def __len__(self) -> int:
        return len(self.sources.lengths)

    def slices(self) -> Iterator[tuple[slice, fractions.Fraction]]:
        """Yields the slice and the weight of each part."""
        start = 0
        for count, weight in self.parts or [(len(self), fractions.Fraction(1))]:
            yield slice(start, start + count), weight
            start += count
