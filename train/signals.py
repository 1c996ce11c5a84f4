"""What Ctrl-C and SIGTERM do."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def handled_by(handler: Callable) -> Iterator[None]:
    """Has `handler(number, frame)` called for both signals."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def exit_now(number: int, frame) -> None:
    """Ends the program, with the exit code that shells expect."""
    print("interrupted. The same command starts from what is saved")
    raise SystemExit(128 + number)


@contextlib.contextmanager
def exit_at_once() -> Iterator[None]:
    """Ends the process where the program exits, without any clearing up.

    An exit out of `fit` leaves threads that make batches. They wait for
    Python's lock, which this thread holds while it waits for them to end.
    """
    try:
        yield
    except SystemExit as exit_:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_.code or 0)


@contextlib.contextmanager
def collected() -> Iterator[list[int]]:
    """Yields a list that the first signal is added to; a second one exits."""
    received = []

    def handler(number, frame):
        if received:
            exit_now(number, frame)
        received.append(number)

    with handled_by(handler):
        yield received
