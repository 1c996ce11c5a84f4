"""Links between the words of a pair, for guided alignment.

A line of Pharaoh's format has the links of a pair: `0-0 1-2` links the first
words of both sides, and the second word of the source with the third one of
the target. Words are what blanks separate, and are counted from 0.
"""

import hashlib
import pathlib
import re
import unicodedata
from collections.abc import Iterator

import numpy as np
import sentencepiece

from command_line.errors import UserError
from command_line.text_files import read_lines
from train.data.corpus import CorpusWrapper, FilePairs, refuse_pipe

LINK = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
WORD_START = "▁"
# A link of two tokens is one number: its target's position times this, plus
# its source's, plus 1. (0 is padding.)
POSITIONS = 1 << 16
VERSION = 2  # Encoded links depend on the rules here.


class LinkedPairs(CorpusWrapper):
    """Two text files, and a file with the links of their words.

    Args:
        pairs: The text.
        path: Path of the links, a line for each pair, in Pharaoh's format.

    Raises:
        UserError: At the first use, if a line is missing or is not a list of
            links, or if it links a word that is not there.
    """

    def __init__(self, pairs: FilePairs, path: pathlib.Path):
        super().__init__(pairs)
        self._path = path

    def __repr__(self) -> str:
        return f"LinkedPairs({self._corpus!r}, {str(self._path)!r})"

    def digest(self) -> str:
        refuse_pipe(self._path)
        digest = hashlib.sha256(self._corpus.digest().encode())
        count = 0
        for line in read_lines(self._path):
            digest.update(f"{line}\n".encode())
            count += 1
        if count != len(self):
            raise UserError(
                "--alignments must have a line for each training pair, "
                f"{len(self):,}. Received: {count:,} in {self._path}"
            )
        return digest.hexdigest()

    def links(self) -> Iterator[np.ndarray]:
        pairs = zip(self._corpus, read_lines(self._path), strict=True)
        for number, (pair, line) in enumerate(pairs, 1):
            links = parse_links(line)
            words = [len(text.split()) for text in pair]
            if links is None or (links >= words).any():
                wanted = f"{words[0]} and {words[1]} words"
                raise UserError(
                    f"line {number} of --alignments {self._path} must link "
                    f"words of its pair, which has {wanted}, such as 0-0 1-2. "
                    f"Received: {line!r}"
                )
            yield links


def parse_links(line: str) -> np.ndarray | None:
    """Returns the links `(n, 2)` of a line; `None` if it has something else."""
    found = [LINK.fullmatch(word) for word in line.split()]
    if not all(found):
        return None
    return np.array([m.groups() for m in found], np.int64).reshape(-1, 2)


class LinkEncoder:
    """Turns links between words into links between tokens of two tokenizers."""

    def __init__(self, processors: list[sentencepiece.SentencePieceProcessor]):
        pieces = [
            [processor.id_to_piece(id_) for id_ in range(len(processor))]
            for processor in processors
        ]
        self._starts = [
            np.array([piece.startswith(WORD_START) for piece in side])
            for side in pieces
        ]
        self._are_punctuation, self._are_blank = (
            [np.array([is_kind(piece) for piece in side]) for side in pieces]
            for is_kind in (is_punctuation, is_blank)
        )

    def __call__(
        self, links: np.ndarray, pair: tuple[str, str], ids: list[list[int]]
    ) -> np.ndarray:
        """Returns the numbers of the links between tokens, int64 `(m,)`.

        All tokens of a word have its links, but its letters with the letters
        of the other word, and its punctuation with that word's. The result is
        empty if the tokenizer finds other words than the blanks separate.

        Args:
            links: Int array `(n, 2)`, words of source and target.
            pair: The text.
            ids: The tokens of both sides, which end in EOS.
        """
        words = [
            np.cumsum(starts[side[:-1]]) - 1
            for starts, side in zip(self._starts, ids, strict=True)
        ]
        counts = [int(side[-1]) + 1 if len(side) else 0 for side in words]
        if counts != [len(text.split()) for text in pair]:
            return np.zeros(0, np.int64)
        linked = np.zeros(counts[::-1], bool)
        linked[links[:, 1], links[:, 0]] = True
        linked = linked[np.ix_(words[1], words[0])]
        source_punctuation, target_punctuation = (
            find_attached_punctuation(
                are_punctuation[side[:-1]], are_blank[side[:-1]], numbers
            )
            for are_punctuation, are_blank, side, numbers in zip(
                self._are_punctuation, self._are_blank, ids, words, strict=True
            )
        )
        linked &= target_punctuation[:, None] == source_punctuation
        targets, sources = np.nonzero(linked)
        return targets * POSITIONS + sources + 1


def is_blank(piece: str) -> bool:
    return not piece.replace(WORD_START, "")


def is_punctuation(piece: str) -> bool:
    """Returns whether a piece has punctuation and symbols only."""
    text = piece.replace(WORD_START, "")
    # Vowel signs, which are letters of a word, are in the category "M".
    kinds = {unicodedata.category(character)[0] for character in text}
    return bool(kinds) and kinds <= {"P", "S"}


def find_attached_punctuation(
    are_punctuation: np.ndarray, are_blank: np.ndarray, words: np.ndarray
) -> np.ndarray:
    """Returns which tokens are punctuation beside letters of their word.

    The arrays `(n,)` have the kind of each token and the number of its word.
    """
    letters = np.bincount(words, ~(are_punctuation | are_blank))
    return are_punctuation & (letters[words] > 0)


def to_weights(numbers: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Returns the links of a batch as uint8 `(n, T, S)`, 1 for a link.

    Args:
        numbers: Int array `(n, m)` of `LinkEncoder`'s numbers, padded with 0.
        shape: `T` and `S`.
    """
    weights = np.zeros((len(numbers), *shape), np.uint8)
    rows, columns = np.nonzero(numbers)
    targets, sources = np.divmod(numbers[rows, columns] - 1, POSITIONS)
    weights[rows, targets, sources] = 1
    return weights
