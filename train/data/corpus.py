"""Corpora of sentence pairs: text files, demo corpus, mixtures.

A corpus is an iterable of pairs that can be read several times. So tens of
millions of pairs need no memory.
"""

import abc
import codecs
import dataclasses
import fractions
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator

import numpy as np

from command_line.bleu_tokenizer import language_of
from command_line.errors import UserError
from command_line.text_files import (
    describe_invalid,
    read_lines,
    read_normalized_chunks,
    read_numbered_lines,
)
from demo_corpus.generator import demo_corpus

SIDES = ("source", "target")
NEWLINE = 10
MAX_LISTED = 20  # Invalid lines of a file that a message lists.


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
        """Returns the SHA-256 of the text, as hexadecimal."""

    def parts(self) -> list[tuple["Corpus", fractions.Fraction]]:
        """Returns the corpora of a mixture, each with its weight."""
        return [(self, fractions.Fraction(1))]

    def languages(self) -> tuple[str, str]:
        """Returns the codes of both languages; `""` if unknown."""
        return "", ""

    def links(self) -> Iterator[np.ndarray] | None:
        """Returns, if they are known, the links between words of each pair.

        Each is an int array `(n, 2)` of the positions of a word of the source
        and one of the target.
        """
        return None

    def symbols(self) -> list[str]:
        """Returns texts that are one subword each of the vocabulary (default:
        none).

        A text includes the blank that precedes it, if any.
        """
        return []


class CorpusWrapper(Corpus):
    """A corpus that is another one, but for what a subclass changes.

    Args:
        corpus: The other corpus.
    """

    def __init__(self, corpus: Corpus):
        self._corpus = corpus

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._corpus)

    def __len__(self) -> int:
        return len(self._corpus)

    def digest(self) -> str:
        return self._corpus.digest()

    def languages(self) -> tuple[str, str]:
        return self._corpus.languages()

    def links(self) -> Iterator[np.ndarray] | None:
        return self._corpus.links()

    def symbols(self) -> list[str]:
        return self._corpus.symbols()


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


def read_all(corpus: Iterable[tuple[str, str]]) -> Pairs:
    """Reads a corpus into memory."""
    return Pairs(*(list(side) for side in zip(*corpus, strict=True)))


# The generator makes all splits together.
all_demo_pairs = functools.cache(demo_corpus)


def demo_pairs(split: str, seed: int = 0) -> Pairs:
    """Returns a split of the embedded English-Spanish corpus.

    Args:
        split: `"train"`, `"validation"`, `"test"` or `"unseen"`.
        seed: Int, seed of the corpus.
    """
    return read_all(all_demo_pairs(seed)[split])


def write_demo_tests(folder: pathlib.Path) -> None:
    """Writes the test sets of the embedded corpus, for `translate.evaluate`."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("test", "unseen"):
        pairs = demo_pairs(split)
        for suffix, lines in (("en", pairs.sources), ("es", pairs.targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{suffix}").write_text(text, encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class FilePairs(Corpus):
    """Two line-aligned files, plain or gzip, UTF-8.

    Length and digest come from one pass over the bytes. The digest equals that
    of the same text as `Pairs`; it depends neither on gzip nor on the kind of
    line ends.

    Attributes:
        source: Path of the sentences.
        target: Path of their translations.
        drop_invalid: Whether pairs with a line that is not UTF-8 are dropped.

    Raises:
        UserError: At the first use, if a file is missing, empty, a pipe or a
            damaged gzip file, if the line counts differ, or if lines are not
            UTF-8 and `drop_invalid` is false.
    """

    source: pathlib.Path
    target: pathlib.Path
    drop_invalid: bool = False

    def __iter__(self) -> Iterator[tuple[str, str]]:
        _, _, dropped = self._scan  # Refuses files that do not match.
        return zip(
            read_lines(self.source, dropped),
            read_lines(self.target, dropped),
            strict=True,
        )

    def __len__(self) -> int:
        return self._scan[0]

    def digest(self) -> str:
        return self._scan[1]

    def languages(self) -> tuple[str, str]:
        return language_of(self.source), language_of(self.target)

    @functools.cached_property
    def _scan(self) -> tuple[int, str, frozenset[int]]:
        digest = hashlib.sha256()
        counts, invalid = [], []
        for path in (self.source, self.target):
            refuse_pipe(path)
            count = 1
            decoder = codecs.getincrementaldecoder("utf-8")()
            for text in read_normalized_chunks(path):
                digest.update(text)
                decoder = decoder and decodes(decoder, text)
                bytes_ = np.frombuffer(text, np.uint8)
                count += int(np.count_nonzero(bytes_ == NEWLINE))
            if not decoder or not decodes(decoder, b"", final=True):
                invalid.append(path)
            digest.update(b"\x00")
            counts.append(count)
        if counts[0] != counts[1]:
            raise UserError(
                "the two files must have as many lines as each other. "
                f"Received: {counts[0]} lines in {self.source}, "
                f"{counts[1]} lines in {self.target}"
            )
        if not invalid:
            return counts[0], digest.hexdigest(), frozenset()
        dropped = self._find_invalid(invalid)
        return counts[0] - len(dropped), self._digest_without(dropped), dropped

    def _find_invalid(self, paths: list[pathlib.Path]) -> frozenset[int]:
        """Returns the numbers of the invalid lines, or refuses them."""
        found = {path: find_invalid_lines(path) for path in paths}
        places = "; ".join(
            f"{path}, {list_some([*lines.values()])}" for path, lines in found.items()
        )
        if not self.drop_invalid:
            raise UserError(
                "text must be UTF-8, or come with --drop-invalid, which drops "
                f"such pairs. Received: {places}"
            )
        dropped = frozenset().union(*found.values())
        print(
            f"note: {len(dropped):,} of the pairs are dropped, since they are "
            f"not UTF-8: {places}"
        )
        return dropped

    def _digest_without(self, dropped: frozenset[int]) -> str:
        """Returns the digest of the same files without some lines."""
        digest = hashlib.sha256()
        for path in (self.source, self.target):
            for i, line in enumerate(read_lines(path, dropped)):
                digest.update(b"\n"[:i] + line.encode())
            digest.update(b"\x00")
        return digest.hexdigest()


def refuse_pipe(path: pathlib.Path) -> None:
    """Refuses a file that can be read only once.

    Raises:
        UserError: If the path is a pipe.
    """
    if path.is_fifo():
        raise UserError(
            "text must be in a file, plain or gzip, since it is read several "
            f"times. Received: {path}, a pipe"
        )


def decodes(
    decoder: codecs.IncrementalDecoder, text: bytes, final: bool = False
) -> codecs.IncrementalDecoder | None:
    """Returns the decoder after `text`, or `None` if that is not UTF-8."""
    try:
        decoder.decode(text, final)
    except UnicodeDecodeError:
        return None
    return decoder


def find_invalid_lines(path: pathlib.Path) -> dict[int, str]:
    """Returns the numbers of lines that are not UTF-8, and what is wrong."""
    found = {}
    for number, line in read_numbered_lines(path):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            found[number] = describe_invalid(line, number, error)
    return found


def list_some(lines: list[str]) -> str:
    """Returns the first lines as one, with the number of the rest."""
    rest = len(lines) - MAX_LISTED
    more = [f"and {rest:,} more lines"] if rest > 0 else []
    return "; ".join(lines[:MAX_LISTED] + more)


class Mixture(Corpus):
    """Several corpora in a row, each with a weight.

    The weight is the average number of times that a pass has a pair: with
    2.5, two or three times; with 0.5, in every other pass. The vocabulary is
    learned on all text, whatever its weight.

    Args:
        parts: Pairs of a corpus and its weight, a positive fraction.
    """

    def __init__(self, parts: list[tuple[Corpus, fractions.Fraction]]):
        self._parts = parts

    def parts(self) -> list[tuple[Corpus, fractions.Fraction]]:
        return self._parts

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return itertools.chain.from_iterable(part for part, _ in self._parts)

    def __len__(self) -> int:
        return sum(len(part) for part, _ in self._parts)

    def digest(self) -> str:
        parts = [[part.digest(), str(weight)] for part, weight in self._parts]
        if any(weight != 1 for _, weight in self._parts):
            # Older runs omitted the same pairs in every pass.
            parts.append("in turn")
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def symbols(self) -> list[str]:
        found = [symbol for part, _ in self._parts for symbol in part.symbols()]
        return list(dict.fromkeys(found))
