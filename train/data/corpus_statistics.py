"""Statistics of a corpus, collected while it is encoded."""

import collections
import hashlib
from collections.abc import Iterable

import numpy as np
import sentencepiece

from keras_transformer.masks import EOS_ID, PADDING_ID
from keras_transformer.tokenizer import UNKNOWN_ID
from train.data.encoded_pairs import Ids, JoinedIds

COUNTS = (
    "pairs",
    "kept",
    "empty",
    "too_long",
    "source_equals_target",
    "source_tokens",
    "target_tokens",
    "unknown_tokens",
    "byte_tokens",
    "round_trips",
    "round_trip_failures",
)
CHUNK = 1 << 20  # Hashes that are read together.
PART = 1 << 22  # Hashes that are sorted together.
SAMPLE = 1_000  # Sentences.


class CorpusStatistics:
    """Counts of a corpus; those of its parts add up.

    Args:
        max_length: Int, longest side of a kept pair.
        filters: Names of more reasons to drop a pair, which are counted too.

    Attributes:
        counts: Counter of `pairs` read, `kept`, `empty` and `too_long` pairs;
            of the kept,
            `source_equals_target` pairs, `source_tokens`, `target_tokens`,
            and among these `unknown_tokens` and `byte_tokens`, pieces that
            spell a character in bytes; and of a sample of the kept lines,
            `round_trips` and `round_trip_failures`, lines that differ after
            encoding and decoding, blanks ignored.
        lengths: Int array `(2, max_length + 1)`, kept sources and targets by
            tokens.
        longest: Int, maximum tokens of a line, dropped lines included.
        example: The first line that failed, and its decoded ids; or `None`.
    """

    def __init__(self, max_length: int, filters: Iterable[str] = ()):
        names = [*COUNTS, *filters]
        self.counts = collections.Counter(dict.fromkeys(names, 0))
        self.lengths = np.zeros((2, max_length + 1), np.int64)
        self.longest = 0
        self.example = None

    def add(self, other: "CorpusStatistics") -> None:
        self.counts.update(other.counts)
        self.lengths += other.lengths
        self.longest = max(self.longest, other.longest)
        self.example = self.example or other.example

    def count_ids(self, sides: list, are_bytes: list[np.ndarray]) -> None:
        """Counts the tokens of kept pairs.

        Args:
            sides: The `Ids` of sources and targets.
            are_bytes: Bool arrays `(V,)`, whether an id of a side is a byte.
        """
        names = ("source_tokens", "target_tokens")
        for row, (name, ids, is_byte) in enumerate(
            zip(names, sides, are_bytes, strict=True)
        ):
            self.counts[name] += ids.flat.size
            self.counts["unknown_tokens"] += int((ids.flat == UNKNOWN_ID).sum())
            self.counts["byte_tokens"] += int(is_byte[ids.flat].sum())
            self.lengths[row] += np.bincount(
                ids.lengths, minlength=self.lengths.shape[1]
            )

    def count_round_trips(
        self,
        processor: sentencepiece.SentencePieceProcessor,
        lines: list[str],
        sequences: list[list[int]],
    ) -> None:
        """Decodes encoded lines and counts those that changed."""
        for line, back in zip(lines, processor.decode(sequences), strict=True):
            self.counts["round_trips"] += 1
            if " ".join(line.split()) != back:
                self.counts["round_trip_failures"] += 1
                self.example = self.example or [line, back]

    def as_json(self) -> dict:
        return {
            **self.counts,
            "source_lengths": self.lengths[0].tolist(),
            "target_lengths": self.lengths[1].tolist(),
            "longest": self.longest,
            "round_trip_example": self.example,
        }


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
    """Merges the statistics of several corpora, as JSON."""
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

    Args:
        training: Uint64 arrays `(n, 2)`, hashes of sources and targets.
        validation: The same of the validation set, which must fit in memory.
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
    """Returns which hashes occur earlier.

    Args:
        hashes: Uint64 array `(n,)`.
        part: Int, approximate maximum number of hashes that are sorted
            together.
    """
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
