"""Reads and writes text files: UTF-8, plain or gzip, of any size."""

import codecs
import contextlib
import gzip
import io
import json
import pathlib
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from command_line.errors import InvalidDocumentError, UserError

GZIP_MAGIC = b"\x1f\x8b"


def read_lines(path: pathlib.Path) -> Iterator[str]:
    """Yields the lines of a plain or gzip text file."""
    for number, line in read_numbered_lines(path):
        yield decode(line, path, number)


def read_numbered_lines(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
    """Yields each line with its number, from 1, before it is decoded.

    A newline, with or without a carriage return before it, ends a line. A byte
    order mark is omitted.
    """
    is_empty = True
    with open_text(path) as file:
        for number, line in enumerate(strip_byte_order_mark(file), start=1):
            if line:
                is_empty = False
                yield number, line.removesuffix(b"\n").removesuffix(b"\r")
    if is_empty:
        raise UserError(f"a text file may not be empty. Received: {path}")


def strip_byte_order_mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields lines, without the byte order mark of the first."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


@contextlib.contextmanager
def open_text(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens a plain or gzip text file, which may be a pipe, to read its bytes."""
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    with raw, decompress(raw, path) as file:
        yield file


@contextlib.contextmanager
def decompress(raw: io.BufferedReader, path: object) -> Iterator[BinaryIO]:
    """Yields a binary file with the content of a plain, gzip or zipped file.

    Raises:
        UserError: While reading, if it is damaged; it names `path`.
    """
    try:
        packed = raw.peek().startswith(GZIP_MAGIC)
        yield gzip.GzipFile(fileobj=raw) if packed else raw
    except (gzip.BadGzipFile, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise UserError(f"not a whole gzip or zip file: {path} ({error})") from None


@contextlib.contextmanager
def open_atomically(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens `FILE.part`, and renames it to the file at the end.

    After an error or a kill the file is unchanged, and the part remains. A
    path that is not a regular file, such as a pipe, is written directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # Keep a symbolic link.
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
    except BaseException:
        if part.exists() and not part.stat().st_size:
            part.unlink()
        raise
    if path.exists():
        shutil.copymode(path, part)
    part.replace(path)


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """Writes a file, which is never incomplete."""
    with open_atomically(path) as file:
        file.write(content)


def write_json(path: pathlib.Path, content: object) -> None:
    """Writes a file of indented JSON, which is never incomplete."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())


def check_lines(lines: Iterable[bytes], path: object) -> Iterator[bytes]:
    """Yields the lines of a file; refuses one that is not text."""
    for number, line in enumerate(lines, start=1):
        decode(line, path, number)
        yield line


def decode(line: bytes, path: object, number: int) -> str:
    if invalid := describe_invalid_byte(line):
        raise InvalidDocumentError(
            "text must be UTF-8 without NUL bytes, plain or gzip. Received: "
            f"{path}, line {number}, {invalid}"
        )
    return line.decode("utf-8")


def describe_invalid_byte(line: bytes) -> str | None:
    """Describes a byte of a line that is not UTF-8, or that is NUL."""
    start = line.find(b"\0")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        start = error.start
    return None if start < 0 else f"byte 0x{line[start]:02x} at column {start + 1}"
