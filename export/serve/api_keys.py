"""Keys of those who may ask, from a file."""

import hmac
import pathlib

from command_line.errors import UserError


def read_keys(path: pathlib.Path) -> tuple[bytes, ...]:
    """Reads keys, one a line; no message shows one.

    Raises:
        UserError: If there is none, or one that no client could send.
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
    """Whether a key is one of them; takes as long for any that is not."""
    given = key.encode()
    # All are compared: where one stands in the file is nobody's business.
    return sum(hmac.compare_digest(given, each) for each in keys) > 0
