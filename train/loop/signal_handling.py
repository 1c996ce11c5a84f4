"""Handlers for Ctrl-C and SIGTERM, which end the run."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

from train.loop import multi_worker

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_END = 5.0


@contextlib.contextmanager
def handled_by(handler: Callable) -> Iterator[None]:
    """Installs `handler(number, frame)` for both signals."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def exit_now(number: int, frame) -> None:
    """Ends the program, with the exit code that shells expect."""
    print("interrupted. The same command resumes from what is saved")
    if multi_worker.is_multi_worker():  # What ends may wait for other workers.
        timer = threading.Timer(SECONDS_TO_END, os._exit, [128 + number])
        timer.daemon = True
        timer.start()
    raise SystemExit(128 + number)


@contextlib.contextmanager
def skip_thread_shutdown() -> Iterator[None]:
    """Ends the process immediately when the program exits or fails.

    Python would wait for TensorFlow's threads, some of which wait for Python
    or for lost workers.
    """
    try:
        yield
        return
    except SystemExit as exit_:
        code = exit_.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
