"""How the command lines tell a user's mistake: one line, exit code 2."""

import contextlib
import pathlib
import shlex
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
        parts = (error.strerror, error.filename)
        # Libraries raise some that hold nothing but a text.
        message = ": ".join(str(p) for p in parts if p) or first_line(error)
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
        raise UserError(
            f"{path} must be whole{advice}. Received: {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error


def refuse_old_name(name: str, argv: list[str]) -> None:
    """Ends a command that is called otherwise now, and says how."""
    with exit_on_user_error():
        command = shlex.join(["python", "-m", name, *argv])
        raise UserError(f"this command has another name now: {command}")


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
