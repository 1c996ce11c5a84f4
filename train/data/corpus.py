"""Corpora of sentence pairs: text files, demo corpus, mixtures.

A corpus is an iterable of pairs that can be read several times. So tens of
millions of pairs need no memory.
"""

import abc
import dataclasses
import fractions
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator

from command_line.bleu_tokenizer import language_of
from command_line.errors import UserError
from command_line.text_files import (
    describe_invalid_byte,
    read_lines,
    read_numbered_lines,
)
from demo_corpus.generator import demo_corpus

SIDES = ("source", "target")
MAX_LISTED = 20  # Invalid lines of a file that a message lists.


class Corpus(abc.ABC):
    """Line-aligned sentences of two languages."""

    @abc.abstractmethod
    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yields each source with its target, without line ends."""

    def __len__(self) -> int:
        """Returns the number of pairs."""
        return self._scan[0]

    def digest(self) -> str:
        """Returns the SHA-256 of the text, as hexadecimal."""
        return self._scan[1]

    @functools.cached_property
    def _scan(self) -> tuple[int, str]:
        """The number of pairs and the digest, which come from one pass."""
        count, digest = 0, hashlib.sha256()
        for source, target in self:
            digest.update(f"{source}\n{target}\n".encode())
            count += 1
        return count, digest.hexdigest()

    def parts(self) -> list[tuple["Corpus", fractions.Fraction]]:
        """Returns the corpora of a mixture, each with its weight."""
        return [(self, fractions.Fraction(1))]

    def languages(self) -> tuple[str, str]:
        """Returns the codes of both languages; `""` if unknown."""
        return "", ""

    def revision(self) -> str:
        """Returns the publisher's revision of the text; `""` if unknown."""
        return ""

    def symbols(self) -> list[str]:
        """Returns texts that are one subword each, with a blank before, if any."""
        return []


class CorpusWrapper(Corpus):
    """A corpus that is another one, but for what a subclass changes."""

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

    def revision(self) -> str:
        return self._corpus.revision()

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


def read_all(corpus: Iterable[tuple[str, str]]) -> Pairs:
    """Reads a corpus into memory."""
    return Pairs(*(list(side) for side in zip(*corpus, strict=True)))


# The generator makes all splits together.
all_demo_pairs = functools.cache(demo_corpus)


def demo_pairs(split: str) -> Pairs:
    """Returns "train", "validation", "test" or "unseen" of the embedded corpus."""
    return read_all(all_demo_pairs()[split])


def write_demo_tests(folder: pathlib.Path) -> None:
    """Writes the test sets of the embedded corpus, for `translate.evaluate`."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("test", "unseen"):
        paths = [folder / f"{split}.{language}" for language in ("en", "es")]
        write_pairs(demo_pairs(split), paths)


def write_pairs(pairs: Pairs, paths: list[pathlib.Path]) -> None:
    """Writes sources and targets to two files, one sentence a line."""
    for path, lines in zip(paths, (pairs.sources, pairs.targets), strict=True):
        text = "".join(f"{line}\n" for line in lines)
        path.write_text(text, encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class FilePairs(Corpus):
    """Two line-aligned files, plain, gzip or of a zip file, UTF-8.

    The digest depends neither on gzip nor on the kind of line ends.

    Attributes:
        source: Path of the sentences, a `pathlib.Path` or a `zipfile.Path`.
        target: Path of their translations, likewise.

    Raises:
        UserError: At the first use, if a file is missing, empty, a pipe or a
            damaged gzip file, if the line counts differ, or if lines are not
            UTF-8.
    """

    source: pathlib.Path
    target: pathlib.Path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(*map(read_lines, self._checked_paths), strict=True)

    def languages(self) -> tuple[str, str]:
        return language_of(self.source), language_of(self.target)

    @functools.cached_property
    def _checked_paths(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Both paths; refuses files that are no corpus."""
        counts, invalid = {}, {}
        for path in (self.source, self.target):
            counts[path], lines = find_invalid_lines(path)
            if lines:
                invalid[path] = lines
        source, target = counts[self.source], counts[self.target]
        if source != target:
            raise UserError(
                "the two files must have as many lines as each other. Received: "
                f"{source} lines in {self.source}, {target} lines in {self.target}"
            )
        places = "; ".join(
            f"{path}, {list_some([*lines.values()])}" for path, lines in invalid.items()
        )
        if invalid:
            raise UserError(
                "text must be UTF-8 without NUL bytes; `iconv -c -f utf-8 -t utf-8` "
                f"drops other bytes. Received: {places}"
            )
        return self.source, self.target


def refuse_pipe(path: pathlib.Path) -> None:
    """Refuses a file that can be read only once."""
    if isinstance(path, pathlib.Path) and path.is_fifo():
        raise UserError(
            "text must be in a file, plain or gzip, since it is read several "
            f"times. Received: {path}, a pipe"
        )


def find_invalid_lines(path: pathlib.Path) -> tuple[int, dict[int, str]]:
    """Returns the number of lines, and of those that are not text the errors."""
    refuse_pipe(path)
    number, found = 0, {}
    for number, line in read_numbered_lines(path):
        if invalid := describe_invalid_byte(line):
            found[number] = f"line {number}, {invalid}"
    return number, found


def list_some(lines: list[str]) -> str:
    """Returns the first lines as one, with the number of the rest."""
    rest = len(lines) - MAX_LISTED
    more = [f"and {rest:,} more lines"] if rest > 0 else []
    return "; ".join(lines[:MAX_LISTED] + more)


class Mixture(Corpus):
    """Several corpora in a row, each with a weight.

    The weight is the average number of times that a pass has a pair: with
    2.5, two or three times; with 0.5, in every other pass. The text that the
    vocabulary is learned on follows the weights, too.

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
        return digest_of(json.dumps(parts))

    def languages(self) -> tuple[str, str]:
        """Returns the codes that all parts share."""
        sides = zip(*(part.languages() for part, _ in self._parts), strict=True)
        return tuple(side[0] if len({*side}) == 1 else "" for side in sides)

    def revision(self) -> str:
        return " ".join(filter(None, (part.revision() for part, _ in self._parts)))

    def symbols(self) -> list[str]:
        found = [symbol for part, _ in self._parts for symbol in part.symbols()]
        return list(dict.fromkeys(found))


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
