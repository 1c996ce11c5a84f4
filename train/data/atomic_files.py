"""Writes files atomically."""

import pathlib


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """Writes a file beside `path` and renames it: whole, or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    beside.replace(path)
