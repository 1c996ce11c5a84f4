"""Statistics of corpora: sums, and repeated pairs."""

import hashlib

import numpy as np

CHUNK = 1 << 20  # Hashes that are read together.
PART = 1 << 22  # Hashes that are sorted together.


def merge_statistics(parts: list[dict]) -> dict:
    """Merges the statistics of several blocks or corpora, as JSON."""
    total = dict(parts[0])
    for part in parts[1:]:
        for name, value in part.items():
            if name == "longest":
                total[name] = max(total[name], value)
            elif name == "round_trip_example":
                total[name] = total[name] or value
            else:
                total[name] = np.add(total[name], value).tolist()
    return total


def hash_lines(lines: list[str]) -> np.ndarray:
    """Returns a 64-bit hash of each line, the same on every machine."""
    digests = [hashlib.blake2b(line.encode(), digest_size=8).digest() for line in lines]
    return np.frombuffer(b"".join(digests), "<u8")


def hash_pairs(hashes: np.ndarray) -> np.ndarray:
    """Returns one hash for each row of `(n, 2)` hashes of both sides."""
    mixed = hashes[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    mixed += hashes[:, 1]  # In place: there may be tens of millions.
    return mixed


def count_overlap(training: list[np.ndarray], validation: np.ndarray) -> dict:
    """Counts the validation sources and pairs that are in the training corpus.

    Both are given by their hashes, uint64 `(n, 2)`.
    """
    return {
        "sources": count_members(validation[:, 0], training, lambda h: h[:, 0]),
        "pairs": count_members(hash_pairs(validation), training, hash_pairs),
    }


def count_members(wanted: np.ndarray, parts: list[np.ndarray], of) -> int:
    """Counts the `wanted` that are among `of(hashes)` of all parts."""
    found = np.zeros(len(wanted), bool)
    for hashes in parts:
        for start in range(0, len(hashes), CHUNK):
            found |= np.isin(wanted, of(hashes[start : start + CHUNK]))
    return int(found.sum())


def find_repeats(hashes: np.ndarray, part: int = PART) -> np.ndarray:
    """Returns which hashes occur earlier; sorts about `part` of them at a time."""
    repeats = np.ones(len(hashes), bool)
    parts = -(-len(hashes) // part)
    for number in range(parts):
        places = np.concatenate(
            [
                start + np.flatnonzero(chunk % np.uint64(parts) == number)
                for start in range(0, len(hashes), CHUNK)
                for chunk in [hashes[start : start + CHUNK]]
            ]
        )
        _, first = np.unique(hashes[places], return_index=True)
        repeats[places[first]] = False
    return repeats
