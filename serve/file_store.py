"""Keeps translated files in memory until they expire."""

import secrets
import time
from collections import OrderedDict
from typing import NamedTuple

from serve.fair_queue import CLIENT

MAX_BYTES = 2**26
MAX_FILES = 10_000
SECONDS = 1200


class File(NamedTuple):
    """A file to download, and when it expires, in seconds of the monotonic clock."""

    name: str
    content: bytes
    expiry: float
    client: str


class FileStore:
    """Files that expire. If the store is full, the client's oldest file is removed.

    If the client has no other file, the oldest of all is removed. The newest
    file is kept, whatever its size.
    """

    def __init__(self):
        # By key, the oldest first. A dict would search for its first entry.
        self._files = OrderedDict()
        self._bytes = 0

    def add(self, name: str, content: bytes) -> str:
        """Stores a file; returns an unguessable key."""
        self._remove_expired()
        new, client = secrets.token_urlsafe(16), CLIENT.get()
        expiry = time.monotonic() + SECONDS
        self._files[new] = File(name, content, expiry, client)
        self._bytes += len(content)
        while len(self._files) > 1 and (
            self._bytes > MAX_BYTES or len(self._files) > MAX_FILES
        ):
            own = (k for k, f in self._files.items() if f.client == client and k != new)
            self._remove(next(own, next(iter(self._files))))
        return new

    def find(self, key: str) -> File | None:
        """Returns the file of a key, or `None` if it has expired."""
        self._remove_expired()
        return self._files.get(key)

    def _remove_expired(self) -> None:
        now = time.monotonic()
        while self._files and self._files[next(iter(self._files))].expiry <= now:
            self._remove(next(iter(self._files)))

    def _remove(self, key: str) -> None:
        self._bytes -= len(self._files.pop(key).content)
