"""User errors of the commands: one line on standard error, exit code 2."""

import contextlib
import pathlib
import sys
import traceback
from collections.abc import Iterator

# What TensorFlow says of an op that this process does not have.
UNKNOWN_OP = "Op type not registered"
shows_tracebacks = False  # `--debug` sets it.


class UserError(ValueError):
    """A mistake of whoever typed the command; its message is one line."""


class NotTextError(UserError):
    """A file that holds something else than its name or its user says."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turns a `UserError`, or a file system's refusal, into exit code 2.

    With `--debug` its traceback stands above the line.
    """
    try:
        yield
    except Exception as error:
        message = message_of(error)
        if message is None:
            raise
        if shows_tracebacks:
            traceback.print_exc()
        sys.stderr.flush()
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2) from None


def message_of(error: Exception) -> str | None:
    """Returns the line that tells an error, or `None` if it is ours."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        parts = (error.strerror, error.filename)
        # Libraries raise some that hold nothing but a text.
        return ": ".join(str(p) for p in parts if p) or first_line(error)
    # TensorFlow wraps a full disk in an error class of its own.
    if "No space left on device" in str(error):
        return "No space left on device; what was there is kept"
    return None


@contextlib.contextmanager
def refuse_damage(path: pathlib.Path, advice: str = "") -> Iterator[None]:
    """Turns whatever a damaged file makes a library raise into a `UserError`.

    Args:
        path: Path of the file or folder that is read.
        advice: What else to say, such as how to find the damage.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # Each library has its own kinds.
        if UNKNOWN_OP in str(error):
            raise UserError(
                f"{path} needs an op that is not here: take the tensorflow and "
                "tensorflow-text that it was written with. Received: "
                f"{first_line(error)}"
            ) from error
        raise UserError(
            f"{path} must be whole{advice}. Received: {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
