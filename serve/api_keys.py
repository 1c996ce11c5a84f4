"""Reads and checks the API keys of clients."""

import hmac
import pathlib
import re

from command_line.errors import UserError

LINE = re.compile(r"(?:(?P<name>[\w.@-]+):\s+)?(?P<key>\S+)")


class ApiKeys:
    """The keys of a file, by name.

    A line is `name: key` or a key alone, whose name is then `line 3`. Empty
    lines and those that begin with `#` are skipped. No message shows a key.

    Args:
        path: File of keys, UTF-8; `None` if clients need no key.

    Raises:
        UserError: If the file holds no key, or a line that is none.
    """

    def __init__(self, path: pathlib.Path | None):
        self._path = path
        self.reload()

    def reload(self) -> None:
        """Reads the file again; the keys stay as they are if that fails.

        Raises:
            UserError: As the constructor.
        """
        self._keys = read_keys(self._path) if self._path else {}

    def __bool__(self):
        return bool(self._keys)

    def find_name(self, key: str) -> str | None:
        """Returns the name of a key, or `None`, in constant time."""
        given = key.encode()
        # Compare with all keys: the time must not depend on the position.
        found = [
            name
            for name, each in self._keys.items()
            if hmac.compare_digest(given, each)
        ]
        return found[0] if found else None


def read_keys(path: pathlib.Path) -> dict[str, bytes]:
    """Returns the keys of a file by name; see `ApiKeys`."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (UnicodeError, OSError):
        lines = []
    keys = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise UserError(
                "--api-keys must hold lines `name: key` or `key`. "
                f"Received: {path}, whose line {number} is neither"
            )
        name = match["name"] or f"line {number}"
        if name in keys or match["key"].encode() in keys.values():
            raise UserError(
                "--api-keys must hold each name and each key once. "
                f"Received: {path}, whose line {number} repeats one"
            )
        keys[name] = match["key"].encode()
    if not keys:
        raise UserError(
            f"--api-keys must hold keys, one a line, UTF-8. Received: {path}"
        )
    return keys
