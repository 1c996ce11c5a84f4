"""Starts TensorFlow without its log on standard error.

Its first lines come before it reads any log level, so they are kept away from
standard error while it is imported and finds its devices. They show if that
fails, or if the command line has `--debug`, which every command takes; then
the error with which a command ends shows its traceback, too.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from command_line import errors

DEBUG = "--debug"
SUCCESS = b"\0"  # No log has one.
# A process apart: where the processor is too old for it, TensorFlow aborts.
KEEPER = """
import sys
said = sys.stdin.buffer.read()
if not said.endswith(b"\\0"):
    sys.stderr.buffer.write(said)
"""


def start_tensorflow() -> None:
    """Imports TensorFlow, where a command of the calling package is run.

    What else imports the package decides itself what TensorFlow says.
    """
    # What Python calls the program until it has found the module of `-m`.
    if sys.argv[0] != "-m":
        return
    if DEBUG in sys.argv:
        sys.argv.remove(DEBUG)
        errors.shows_tracebacks = True
        return
    # From then on it reads this: no notes, and no complaint about the
    # processor, which it calls an error. What goes wrong is raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with stderr_hidden_unless_error():
        import tensorflow as tf

        tf.config.list_physical_devices()


@contextlib.contextmanager
def stderr_hidden_unless_error() -> Iterator[None]:
    """Holds back what anything in this process writes to standard error."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", KEEPER],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the command alone.
    )
    sys.stderr.flush()
    stderr = os.dup(2)
    os.dup2(keeper.stdin.fileno(), 2)
    try:
        yield
        os.write(2, SUCCESS)
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        keeper.communicate()
