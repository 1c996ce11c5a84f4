"""Keeps translated files in memory until they expire."""

import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

MAX_BYTES = 2**26
MAX_FILES = 10_000
SECONDS = 1200


class File(NamedTuple):
    """A file to download, and when it expires, in seconds of the monotonic clock."""

    name: str
    content: bytes
    expiry: float


class FileStore:
    """Files that expire; the oldest are removed first.

    Args:
        max_bytes: Int, maximum size of all files; the newest one is kept
            whatever its size.
        max_files: Int, maximum number of files.
        seconds: Float, after how long a file expires.
    """

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        max_files: int = MAX_FILES,
        seconds: float = SECONDS,
    ):
        self._max_bytes, self._max_files = max_bytes, max_files
        self._seconds = seconds
        # By key, the oldest first. A dict would search for its first entry.
        self._files = OrderedDict()
        self._bytes = 0

    def add(self, name: str, content: bytes) -> str:
        """Stores a file; returns an unguessable key."""
        self._remove_expired()
        key = secrets.token_urlsafe(16)
        self._files[key] = File(name, content, time.monotonic() + self._seconds)
        self._bytes += len(content)
        while len(self._files) > 1 and (
            self._bytes > self._max_bytes or len(self._files) > self._max_files
        ):
            self._remove_oldest()
        return key

    def find(self, key: str) -> File | None:
        """Returns the file of a key, or `None` if it has expired."""
        self._remove_expired()
        return self._files.get(key)

    def _remove_expired(self) -> None:
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).expiry <= now:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        _, file = self._files.popitem(last=False)
        self._bytes -= len(file.content)
