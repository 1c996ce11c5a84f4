"""Sentence pairs, from two text files or from the embedded corpus.

A corpus is read one pair after the other, as often as need be, so that tens of
millions of pairs take no memory.
"""

import abc
import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterator

import numpy as np

from keras_transformer.errors import UserError
from keras_transformer.text_files import read_lines
from keras_transformer.text_files import read_text
from train.demo_corpus import demo_corpus

NEWLINE = 10


class Corpus(abc.ABC):
    """Line-aligned sentences of two languages."""

    @abc.abstractmethod
    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yields each source with its target, without line ends."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """Returns the number of pairs."""

    @abc.abstractmethod
    def digest(self) -> str:
        """Returns a SHA-256 that tells this text from any other, as hex."""

    def repeats(self) -> Iterator[int] | None:
        """Yields how often each pair comes in an epoch; `None`: all once."""
        return None

    def symbols(self) -> list[str]:
        """Returns words that the vocabulary holds whole; by default none."""
        return []


@dataclasses.dataclass(frozen=True)
class Pairs(Corpus):
    """A corpus in memory.

    Attributes:
        sources: Sentences, without line ends.
        targets: Their translations, as many.
    """

    sources: list[str]
    targets: list[str]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.sources, self.targets, strict=True)

    def __len__(self) -> int:
        return len(self.sources)

    def digest(self) -> str:
        digest = hashlib.sha256()
        for side in (self.sources, self.targets):
            digest.update("\n".join(side).encode())
            digest.update(b"\x00")
        return digest.hexdigest()


def demo_pairs(split: str, seed: int = 0) -> Pairs:
    """Returns a split of the embedded English-Spanish corpus.

    Args:
        split: `"train"`, `"validation"`, `"test"` or `"unseen"`.
        seed: Int, seed of the corpus.
    """
    sources, targets = zip(*all_demo_pairs(seed)[split], strict=True)
    return Pairs(list(sources), list(targets))


all_demo_pairs = functools.cache(demo_corpus)  # All splits come at once.


@dataclasses.dataclass(frozen=True)
class FilePairs(Corpus):
    """Two line-aligned files, plain or gzip, UTF-8.

    Length and digest come from one pass over the bytes, which is what a run
    that finds its ids on disk has to wait for. The digest is that of the same
    text as `Pairs`: neither gzip nor the kind of line ends changes it.

    Attributes:
        source: Path of the sentences.
        target: Path of their translations.

    Raises:
        UserError: At the first use, if a file is missing, empty or no whole
            gzip file, or if the line counts differ; while iterating, at a
            line that is not UTF-8.
    """

    source: pathlib.Path
    target: pathlib.Path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        len(self)  # Refuses files that do not match.
        return zip(
            read_lines(self.source), read_lines(self.target), strict=True
        )

    def __len__(self) -> int:
        return self._scan[0]

    def digest(self) -> str:
        return self._scan[1]

    @functools.cached_property
    def _scan(self) -> tuple[int, str]:
        digest = hashlib.sha256()
        counts = []
        for path in (self.source, self.target):
            count = 1
            for text in read_text(path):
                digest.update(text)
                bytes_ = np.frombuffer(text, np.uint8)
                count += int(np.count_nonzero(bytes_ == NEWLINE))
            digest.update(b"\x00")
            counts.append(count)
        if counts[0] != counts[1]:
            raise UserError(
                "the two files must have as many lines as each other. "
                f"Received: {counts[0]} lines in {self.source}, "
                f"{counts[1]} lines in {self.target}"
            )
        return counts[0], digest.hexdigest()
