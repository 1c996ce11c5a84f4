"""Keeps translated files until they expire."""

import contextlib
import os
import pathlib
import re
import secrets
import shutil
import tempfile
import time
import weakref
from typing import NamedTuple

MAX_BYTES = 2**26
SECONDS = 1200
# The folder that several processes share; without it each has its own.
FOLDER_VARIABLE = "TRANSLATED_FILES_DIR"
KEY = re.compile(r"[\w-]{22}", re.ASCII)


class File(NamedTuple):
    """A file to download."""

    name: str
    content: bytes


class FileStore:
    """Files in a temporary folder, which expire; the oldest are removed first."""

    def __init__(self, max_bytes: int = MAX_BYTES, seconds: float = SECONDS):
        self._max_bytes, self._seconds = max_bytes, seconds
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            folder = tempfile.mkdtemp()
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = pathlib.Path(folder)

    def add(self, name: str, content: bytes) -> str:
        """Stores a file; returns an unguessable key."""
        key = secrets.token_urlsafe(16)
        # Renamed when complete: no other process finds half of it.
        path = self._folder / f"{key}.part"
        path.write_bytes(name.encode() + b"\n" + content)
        path.rename(self._folder / key)
        self._drop_old()
        return key

    def find(self, key: str) -> File | None:
        """Returns the file of a key, or `None` if it has expired."""
        self._drop_old()
        if not KEY.fullmatch(key):
            return None
        try:
            stored = (self._folder / key).read_bytes()
        except FileNotFoundError:
            return None
        name, _, content = stored.partition(b"\n")
        return File(name.decode(), content)

    def _drop_old(self) -> None:
        stored = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # Another process was faster.
                status = path.stat()
                stored.append((status.st_mtime_ns, status.st_size, path))
        kept = sum(size for _, size, _ in stored)
        oldest = time.time_ns() - self._seconds * 1e9
        for time_ns, size, path in sorted(stored):
            if kept <= self._max_bytes and time_ns > oldest:
                break
            kept -= size
            path.unlink(missing_ok=True)
