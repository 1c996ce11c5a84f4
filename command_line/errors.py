"""User errors of the commands: one line on standard error, exit code 2."""

import contextlib
import pathlib
import sys
import traceback
import types
from collections.abc import Iterator
from importlib.util import find_spec

from command_line.launcher import EXTRAS, install_command

# TensorFlow's message for an op that this process lacks.
UNKNOWN_OP = "Op type not registered"
shows_tracebacks = False  # Set by `--debug`.


class UserError(ValueError):
    """A mistake of the user; its message is one line."""


class InvalidDocumentError(UserError):
    """A file whose content is not what its name or its option promises."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turns a `UserError` or an `OSError` into one line and exit code 2.

    With `--debug` the traceback precedes the line.
    """
    try:
        yield
    except Exception as error:
        message = user_message(error)
        if message is None:
            raise
        if shows_tracebacks:
            traceback.print_exc()
        sys.stderr.flush()
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2) from None


@contextlib.contextmanager
def require_extra(what: str, extra: str) -> Iterator[None]:
    """Turns an `ImportError` into a `UserError` that names what to install."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            f"{what} needs the extra `{extra}`: {install_command(extra)}. "
            f"Received: {error}"
        ) from error


def report_missing_package(
    kind: type, error: Exception, trace: types.TracebackType
) -> None:
    """Names the extra that a command lacks; a `sys.excepthook`."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    command = sys.orig_argv
    if not name or "-m" not in command or find_spec(name.partition(".")[0]):
        sys.__excepthook__(kind, error, trace)
        return
    module = command[command.index("-m") + 1]
    with exit_on_user_error(), require_extra(module, EXTRAS.get(module, "train")):
        raise error


def user_message(error: Exception) -> str | None:
    """Returns the line for a user's error, or `None` for a bug."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        parts = (error.strerror, error.filename)
        # Libraries raise some that have only a text.
        return ": ".join(str(p) for p in parts if p) or first_line(error)
    # TensorFlow reports a full disk by an error class of its own.
    if "No space left on device" in str(error):
        return "No space left on device; what was there is kept"
    return None


@contextlib.contextmanager
def refuse_damage(path: pathlib.Path, advice: str = "") -> Iterator[None]:
    """Turns errors of a library that reads a damaged file into a `UserError`.

    `advice` is added to the message, such as how to find the damage.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # Each library has its own classes.
        if UNKNOWN_OP in str(error):
            raise UserError(
                f"{path} needs an op that is not here: take the tensorflow and "
                "tensorflow-text that it was written with. Received: "
                f"{first_line(error)}"
            ) from error
        raise UserError(
            f"{path} must be whole{advice}. Received: {describe_error(error)}"
        ) from error


def describe_error(error: Exception) -> str:
    """Returns the class of an error, and the first line of its message."""
    return f"{type(error).__name__}: {first_line(error)}"


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
