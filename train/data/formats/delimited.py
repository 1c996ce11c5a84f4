"""Reads columns of text: TSV and CSV, UTF-8, plain or gzip."""

import csv
import pathlib
import re
from collections.abc import Iterable, Iterator

from command_line.errors import UserError
from command_line.text_files import decode, read_numbered_lines
from train.data.formats.language_codes import find_code, require_codes

# A field in quotes, with doubled quotes inside.
QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


def read_pairs(
    path: pathlib.Path, source: str, target: str, tabs: bool = False
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of the columns that the first row names, or of the only two.

    A code may also be the number of a column, from 1.
    """
    lines = (decode(x, path, n) + "\n" for n, x in read_numbered_lines(path))
    rows = map(split_tabs, lines) if tabs else read_csv(lines, path)
    columns = []
    for number, row in enumerate(rows, start=1):
        if not any(row):
            continue
        if not columns:
            columns, is_header = find_columns(row, (source, target), path)
            if is_header:
                continue
        if len(row) <= max(columns):
            raise UserError(
                f"{path}, row {number}, must have {max(columns) + 1} columns or "
                f"more. Received: {len(row)}, {row!r:.60}"
            )
        yield tuple(row[column] for column in columns)


def find_columns(
    row: list[str], codes: tuple[str, str], path: pathlib.Path
) -> tuple[list[int], bool]:
    """Returns the indices of both columns, and whether the row is a header."""
    if all(code.isdecimal() and int(code) for code in codes):
        return [int(code) - 1 for code in codes], False
    if any(find_code(code, row, path) for code in codes):
        return [row.index(name) for name in require_codes(codes, row, path)], True
    if len(row) != 2:
        raise UserError(
            f"{path} must have a first row with {' and '.join(codes)}, or two "
            "columns; else name them by number: --source-language 1 "
            f"--target-language 2. Received: {len(row)} columns, {row!r:.60}"
        )
    return [0, 1], False


def read_csv(lines: Iterable[str], path: pathlib.Path) -> Iterator[list[str]]:
    rows = csv.reader(lines, strict=True)
    try:
        yield from rows
    except csv.Error as error:
        where = f"{path}, line {rows.line_num},"
        raise UserError(f"{where} must be CSV, as in RFC 4180: {error}") from None


def split_tabs(line: str) -> list[str]:
    """Splits a line; a field that only pandas writes so loses its quotes."""
    return [
        field[1:-1].replace('""', '"') if QUOTED.fullmatch(field) else field
        for field in line.removesuffix("\n").split("\t")
    ]
