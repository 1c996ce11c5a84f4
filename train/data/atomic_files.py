"""Writes files atomically."""

import pathlib


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """Writes a temporary file and renames it, so `path` is never incomplete."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    beside.replace(path)
