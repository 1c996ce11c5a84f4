"""Text files of the command lines: UTF-8, plain or gzip, of any size."""

import codecs
import gzip
import pathlib
import zlib
from collections.abc import Iterator

from command_line.errors import UserError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 20  # Bytes read at a time.


def read_text(path: pathlib.Path) -> Iterator[bytes]:
    """Yields the content of a file, its line ends as bare newlines.

    The newline that ends the last line is left out, and so is a byte order
    mark.
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
    """Yields the bytes of a file, unpacked, without a byte order mark; some."""
    mark = codecs.BOM_UTF8
    try:
        # Opened once, since a pipe can be read but once.
        with path.open("rb") as raw:
            packed = raw.peek().startswith(GZIP_MAGIC)
            file = gzip.GzipFile(fileobj=raw) if packed else raw
            chunk = file.read(len(mark)).removeprefix(mark) + file.read(CHUNK)
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
