"""Statistics of corpora: sums, repeated pairs, unknown text."""

import hashlib

import numpy as np
import sentencepiece

from keras_transformer.special_ids import EOS_ID, PADDING_ID, UNKNOWN_ID
from train.data.encoded_pairs import Ids, JoinedIds

CHUNK = 1 << 20  # Hashes that are read together.
PART = 1 << 22  # Hashes that are sorted together.
SAMPLE = 1_000  # Sentences.


def unknown_share(ids: Ids | JoinedIds, proto: bytes) -> float:
    """Returns the share of a text that its tokenizer does not know.

    It is the share of subwords that are unknown, or a byte of a character.
    Those of a blank and EOS do not count, since an unknown word is one unknown
    subword after a blank.

    Args:
        ids: The ids of one side, of which 1,000 sentences, evenly spread, are
            counted.
        proto: Serialized SentencePiece model.
    """
    count = len(ids.lengths)
    some = np.linspace(0, count - 1, min(count, SAMPLE), dtype=int)
    found = ids.pad(some, int(ids.lengths[some].max()))
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    blank = processor.piece_to_id("▁")
    if blank == UNKNOWN_ID:  # The vocabulary lacks the piece.
        blank = PADDING_ID
    pieces = found[~np.isin(found, [PADDING_ID, EOS_ID, blank])].tolist()
    unread = sum(i == UNKNOWN_ID or processor.is_byte(i) for i in pieces)
    return unread / max(1, len(pieces))


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
