"""Sentence pairs, from two text files or from the embedded corpus."""

import dataclasses
import functools
import gzip
import hashlib
import pathlib

from keras_transformer.errors import UserError
from train.demo_corpus import demo_corpus

GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Line-aligned sentences of two languages.

    Attributes:
        sources: Sentences, without line ends.
        targets: Their translations, as many.
    """

    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)

    def digest(self) -> str:
        """Returns the SHA-256 of the text, as hexadecimal digits."""
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


def read_pairs(source: pathlib.Path, target: pathlib.Path) -> Pairs:
    """Reads two line-aligned files, plain or gzip, UTF-8.

    Raises:
        UserError: If a file is missing, empty or not UTF-8, or if the line
            counts differ.
    """
    pairs = Pairs(read_lines(source), read_lines(target))
    if len(pairs.sources) != len(pairs.targets):
        raise UserError(
            "the two files must have as many lines as each other. Received: "
            f"{len(pairs.sources)} lines in {source}, "
            f"{len(pairs.targets)} lines in {target}"
        )
    return pairs


def read_lines(path: pathlib.Path) -> list[str]:
    """Reads the lines of a plain or gzip text file."""
    content = read_bytes(path)
    if not content:
        raise UserError(f"a text file may not be empty. Received: {path}")
    # Only a newline ends a line: `splitlines` would also break at U+2028.
    lines = content.removesuffix(b"\n").split(b"\n")
    return [
        decode(line.removesuffix(b"\r"), path, number)
        for number, line in enumerate(lines, start=1)
    ]


def read_bytes(path: pathlib.Path) -> bytes:
    try:
        content = path.read_bytes()
        return (
            gzip.decompress(content)
            if content.startswith(GZIP_MAGIC)
            else content
        )
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise UserError(f"not a whole gzip file: {path} ({error})") from None


def decode(line: bytes, path: pathlib.Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"text must be UTF-8. Received: {path}, line {number}, "
            f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        ) from None
