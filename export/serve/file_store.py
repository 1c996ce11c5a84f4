"""Keeps translated files in memory until they are downloaded or expire."""

import collections
import secrets
import time
from typing import NamedTuple

MAX_BYTES = 2**26
SECONDS = 1200


class File(NamedTuple):
    """A file to download."""

    name: str
    content: bytes
    until: float


class FileStore:
    """Files in memory, which expire; the oldest are removed first.

    Args:
        max_bytes: Int, maximum total size.
        seconds: Float, lifetime of a file.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, seconds: float = SECONDS):
        self._max_bytes, self._seconds = max_bytes, seconds
        self._files = collections.OrderedDict()

    def add(self, name: str, content: bytes) -> str:
        """Stores a file; returns an unguessable key."""
        key = secrets.token_urlsafe(16)
        self._files[key] = File(name, content, time.monotonic() + self._seconds)
        self._drop_old()
        return key

    def find(self, key: str) -> File | None:
        """Returns the file of a key, or `None` if it has expired."""
        self._drop_old()
        return self._files.get(key)

    def _drop_old(self) -> None:
        kept = sum(len(file.content) for file in self._files.values())
        for key, file in list(self._files.items()):
            if kept <= self._max_bytes and time.monotonic() < file.until:
                break
            kept -= len(file.content)
            del self._files[key]
