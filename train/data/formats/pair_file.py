"""Corpora in one file, of a format by its suffix, or that a function reads."""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Iterator

from command_line.errors import UserError
from command_line.text_files import describe_invalid_byte
from train.data.corpus import Corpus, FilePairs, refuse_pipe
from train.data.formats import delimited, json_lines, opus_zip, parquet, tmx
from train.data.formats.language_codes import require_both

READERS = {
    ".csv": delimited.read_pairs,
    ".json": json_lines.read_pairs,
    ".jsonl": json_lines.read_pairs,
    ".parquet": parquet.read_pairs,
    ".tmx": tmx.read_pairs,
    ".tsv": functools.partial(delimited.read_pairs, tabs=True),
}
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


@dataclasses.dataclass(frozen=True)
class ReadPairs(Corpus):
    """Pairs that a function reads; a line break in a text becomes a blank.

    Attributes:
        name: What is read, for errors.
        codes: The codes of both languages.
        read: Returns an iterator of the pairs; `None` is an empty text.
        commit: The revision of the text, if its publisher names one.
    """

    name: str
    codes: tuple[str, str]
    read: Callable[[], Iterator[tuple[str | None, str | None]]] = dataclasses.field(
        repr=False
    )
    commit: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(self.read(), start=1):
            if not all(map(is_text, pair)):
                raise UserError(
                    f"{self.name}, pair {number}, must be text in UTF-8 without NUL "
                    f"bytes. Received: {pair!r:.80}"
                )
            texts = [(text or "").strip("\r\n") for text in pair]
            yield tuple(LINE_BREAK.sub(" ", text) for text in texts)

    def languages(self) -> tuple[str, str]:
        return tuple("" if code.isdecimal() else code for code in self.codes)

    def revision(self) -> str:
        return self.commit


def is_text(value: object) -> bool:
    """Whether a value is `None` or a string that a text file may have."""
    if not isinstance(value, str):
        return value is None
    return not describe_invalid_byte(value.encode("utf-8", "surrogatepass"))


def open_pair_file(path: pathlib.Path, codes: tuple[str | None, str | None]) -> Corpus:
    """Returns the pairs of two languages in a file, such as `corpus.tmx.gz`."""
    require_both(codes, path)
    if not path.exists():
        raise UserError(f"no such file: {path}")
    refuse_pipe(path)
    suffix = pathlib.Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == ".zip":
        return FilePairs(*opus_zip.find_files(path, *codes))
    if suffix not in READERS or (suffix == ".parquet" != path.suffix.lower()):
        raise UserError(
            "a file of pairs must end in .zip, "
            f"{', '.join(READERS)}; but for .zip and .parquet, .gz may follow. "
            f"Received: {path}"
        )
    read = functools.partial(READERS[suffix], path, *codes)
    return ReadPairs(str(path), tuple(codes), read)
