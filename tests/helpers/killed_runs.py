"""Runs `python -m train` again and again, and kills it.

TensorFlow is imported once; each life of the run is a fork of this process,
which has not started TensorFlow's runtime. Arguments: number of runs, how often
each is killed, seed, a folder for the runs, then options of `python -m train`.
The run in `whole` is not killed, that in `renames` just before files appear.
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
    folders, kills, seed, run_dir, *argv = sys.argv[1:]
    generator = random.Random(int(seed))

    def run(name, renames=None):
        return live([*argv, "--run-dir", f"{run_dir}/{name}"], renames)

    started = time.monotonic()
    finish(run("whole"))
    lifetime = time.monotonic() - started
    for renames in RENAMES:
        os.waitpid(run("renames", renames), 0)
    finish(run("renames"))
    for number in range(int(folders)):
        for _ in range(int(kills)):
            # Lives go on where the one before was killed: all of it is hit.
            kill_after(run(f"kills-{number}"), generator.uniform(0, lifetime))
        finish(run(f"kills-{number}"))


def finish(child: int) -> None:
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
