"""Reads and checks the API keys of clients."""

import hmac
import pathlib

from command_line.errors import UserError


def read_keys(path: pathlib.Path) -> tuple[bytes, ...]:
    """Reads keys, one a line. Error messages show no key.

    Raises:
        UserError: If the file holds no key, or an invalid one.
    """
    try:
        keys = tuple(path.read_text("utf-8").split())
    except UnicodeError:
        keys = ()
    if not keys:
        raise UserError(
            f"--api-keys must hold keys, one a line, UTF-8. Received: {path}"
        )
    return tuple(key.encode() for key in keys)


def is_known(key: str, keys: tuple[bytes, ...]) -> bool:
    """Returns whether a key is valid, in constant time."""
    given = key.encode()
    # Compare with all keys: the time must not depend on the position.
    return sum(hmac.compare_digest(given, each) for each in keys) > 0
