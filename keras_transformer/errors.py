"""How the command lines tell a user's mistake: one line, exit code 2."""

import contextlib
import sys
from collections.abc import Iterator


class UserError(ValueError):
    """A mistake of whoever typed the command; its message is one line."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turns a `UserError`, or a file system's refusal, into exit code 2."""
    try:
        yield
    except UserError as error:
        message = str(error)
    except OSError as error:
        message = ": ".join(
            str(part) for part in (error.strerror, error.filename) if part
        )
    except Exception as error:
        # TensorFlow wraps a full disk in an error class of its own.
        if "No space left on device" not in str(error):
            raise
        message = "No space left on device; what was there is kept"
    else:
        return
    sys.stderr.flush()
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)
