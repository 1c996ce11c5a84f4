"""Starts TensorFlow without its log on standard error.

TensorFlow writes its first lines before it reads any log level. So standard
error is redirected while it is imported and finds its devices. The lines appear
if the import fails, or with `--debug`, which also shows tracebacks of errors.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from command_line import errors

DEBUG_FLAG = "--debug"
SUCCESS_MARKER = b"\0"  # A byte that no log contains.
# A separate process, since TensorFlow aborts on processors that are too old.
STDERR_BUFFER_SCRIPT = """
import sys
log = sys.stdin.buffer.read()
if not log.endswith(b"\\0"):
    sys.stderr.buffer.write(log)
"""


def start_tensorflow() -> None:
    """Imports TensorFlow quietly, if a command of the calling package is run.

    In other programs that import the package, TensorFlow's log is unchanged.
    """
    # Python's name of the program until it has found the module of `-m`.
    if sys.argv[0] != "-m":
        return
    sys.excepthook = errors.report_missing_package
    if DEBUG_FLAG in sys.argv:
        sys.argv.remove(DEBUG_FLAG)
        errors.shows_tracebacks = True
        return
    # From now on TensorFlow reads this level: no notes, and no message
    # about the processor, which has the level of errors. Errors are raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with stderr_hidden_unless_error():
        import tensorflow as tf

        tf.config.list_physical_devices()


@contextlib.contextmanager
def stderr_hidden_unless_error() -> Iterator[None]:
    """Context manager: shows this process's standard error only on failure."""
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", STDERR_BUFFER_SCRIPT],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Only the command itself handles Ctrl-C.
    )
    sys.stderr.flush()
    stderr = os.dup(2)
    os.dup2(keeper.stdin.fileno(), 2)
    try:
        yield
        os.write(2, SUCCESS_MARKER)
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        keeper.communicate()
