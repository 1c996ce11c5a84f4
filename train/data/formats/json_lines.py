"""Reads JSON lines, UTF-8, plain or gzip."""

import json
import pathlib
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.text_files import read_numbered_lines
from train.data.formats.language_codes import require_codes


def read_pairs(
    path: pathlib.Path, source: str, target: str
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of objects with both languages, or with a `translation`."""
    names = None
    for number, line in read_numbered_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number},"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # Not JSON, or not UTF-8.
            raise UserError(f"{where} must be JSON. Received: {error}") from None
        if isinstance(row, dict) and isinstance(row.get("translation"), dict):
            row = row["translation"]
        if not isinstance(row, dict):
            raise UserError(
                f"{where} must be an object in one line. Received: {row!r:.60}"
            )
        if not names or not all(name in row for name in names):
            names = require_codes((source, target), row, where)
        yield tuple(row[name] for name in names)
