"""Sentence pairs, from two text files or from the embedded corpus.

A corpus is read one pair after the other, as often as need be, so that tens of
millions of pairs take no memory.
"""

import abc
import dataclasses
import functools
import gzip
import hashlib
import pathlib
import zlib
from collections.abc import Iterator

import numpy as np

from keras_transformer.errors import UserError
from train.demo_corpus import demo_corpus

GZIP_MAGIC = b"\x1f\x8b"
NEWLINE = 10
CHUNK = 1 << 20  # Bytes read at a time.


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


def read_text(path: pathlib.Path) -> Iterator[bytes]:
    """Yields the content of a file, its line ends as bare newlines.

    The newline that ends the last line is left out.
    """
    held = b""
    for chunk in read_chunks(path):
        text = held + chunk
        if b"\r" in text:  # Looking for one byte is ten times as fast.
            text = text.replace(b"\r\n", b"\n")
        # What follows decides whether these bytes end a line or the file.
        held = text[-1:] if text.endswith((b"\r", b"\n")) else b""
        yield text.removesuffix(held)


def read_lines(path: pathlib.Path) -> Iterator[str]:
    """Yields the lines of a plain or gzip text file."""
    rest = b""
    number = 1
    for text in read_text(path):
        # Only a newline ends a line: `splitlines` would also break at U+2028.
        *lines, rest = (rest + text).split(b"\n")
        for line in lines:
            yield decode(line, path, number)
            number += 1
    yield decode(rest, path, number)


def read_chunks(path: pathlib.Path) -> Iterator[bytes]:
    """Yields the bytes of a file, unpacked; at least some."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with (gzip.open if packed else open)(path, "rb") as file:
            chunk = file.read(CHUNK)
            if not chunk:
                raise UserError(
                    f"a text file may not be empty. Received: {path}"
                )
            while chunk:
                yield chunk
                chunk = file.read(CHUNK)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"not a whole gzip file: {path} ({error})") from None


def decode(line: bytes, path: pathlib.Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"text must be UTF-8. Received: {path}, line {number}, "
            f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        ) from None
