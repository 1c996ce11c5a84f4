"""Runs `python -m train` again and again, and kills it.

TensorFlow is imported once; each life of the run is a fork of this process,
which has not started TensorFlow's runtime. Arguments: number of lives that end
at a random moment, seed, then the options of `python -m train`, --run-dir
last. A run that nobody kills goes to the folder of that name and `-timed`.
"""

import os
import pathlib
import random
import signal
import sys
import threading
import time

import tensorflow  # noqa: F401  Imported before the forks, for speed.

import train.__main__ as train_command

# Files are written beside and renamed; these lives end just before.
RENAMES = (1, 2, 4, 6, 9, 12)


def live(argv: list[str], renames: int | None) -> int:
    """Forks a run; it kills itself instead of its rename number `renames`."""
    child = os.fork()
    if child:
        return child
    if renames is not None:
        rename = pathlib.Path.replace
        left = renames

        def counted(path, target):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return rename(path, target)

        pathlib.Path.replace = counted
    try:
        train_command.main(argv)
        code = 0
    except SystemExit as exit_:
        code = exit_.code
    sys.stdout.flush()
    os._exit(code)


def kill_after(child: int, seconds: float) -> None:
    timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    timer.join()
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, status


def main() -> None:
    kills, seed, *argv = sys.argv[1:]
    generator = random.Random(int(seed))
    for renames in RENAMES:
        os.waitpid(live(argv, renames), 0)
    started = time.monotonic()
    os.waitpid(live([*argv, "--run-dir", sys.argv[-1] + "-timed"], None), 0)
    lifetime = time.monotonic() - started
    for _ in range(int(kills)):
        kill_after(live(argv, None), generator.uniform(0, lifetime))
    _, status = os.waitpid(live(argv, None), 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
