"""Runs `python -m train` repeatedly and kills it.

TensorFlow is imported once; each life of a run is a fork of this process,
which has not started TensorFlow's runtime. Arguments: a folder for the runs,
then options of `python -m train`. The run in `whole` is not killed. That in
`killed` is killed six times just before a file is renamed, up to twice at random
moments, and six times in `PLACES`: twice within an epoch, after its last update,
and four times after the last epoch.
"""

import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time

import tensorflow  # noqa: F401  Imported before the forks, for speed.

import train.__main__ as train_command
from keras_transformer import Transformer
from train import final_model
from train.monitoring.progress import ProgressLogger
from train.monitoring.validation_bleu import ValidationBleu

OPTIONS = [
    *("--patience=2", "--best-by=bleu"),
    *("--validate-bleu=1", "--validation-beam-size=1"),
]
# Files are written beside and renamed; these lives end just before.
KILL_BEFORE_RENAME = (1, 2, 4, 6, 9, 12)
# These end just after a call within
PLACES = (
    (ProgressLogger, "on_test_begin"),  # the validation,
    (ValidationBleu, "_search_batch"),  # the translation of its sentences,
    (Transformer, "get_weights"),  # the mean of the checkpoints,
    (Transformer, "save"),  # the file that becomes `model.keras`,
    (final_model, "make_dataset"),  # the scores of that,
    (ValidationBleu, "_search_batch"),  # and its translations.
)
NUM_WITHIN_EPOCH = 2  # Of these.


def fork_killed_run(argv: list[str], before=None, after=None) -> int:
    """Forks a run that kills itself before its `before`-th rename, or after a call."""
    child = os.fork()
    if child:
        return child
    if before is not None:
        kill_at_call(pathlib.Path, "replace", before=before)
    if after is not None:
        kill_at_call(*after)
    try:
        train_command.main(argv)
        code = 0
    except SystemExit as exit_:
        code = exit_.code
    sys.stdout.flush()
    os._exit(code)


def kill_at_call(owner, name: str, before: int | None = None) -> None:
    function, left = getattr(owner, name), before

    def deadly(*args, **kwargs):
        nonlocal left
        if left is None:
            function(*args, **kwargs)
        else:
            left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, name, deadly)


def wait_for_child(child: int) -> bool:
    """Returns whether a life was killed; one that fails ends this process."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"a run ended with {code}")
    return code != 0


def kill_at_random(start, lifetime: float, generator: random.Random) -> None:
    """Kills a run at a random moment, if it does not end before."""
    child = start()
    seconds = generator.uniform(0, lifetime)
    timer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    timer.start()
    # A life that ended meanwhile is not waited for: its number stays its own.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    timer.cancel()
    timer.join()
    wait_for_child(child)


def main() -> None:
    run_dir, *argv = sys.argv[1:]
    generator = random.Random(5)

    def start(state="killed", **kwargs):
        folder = f"--run-dir={run_dir}/{state}"
        return fork_killed_run([*argv, *OPTIONS, folder], **kwargs)

    def kill(**kwargs):
        assert wait_for_child(start(**kwargs)), kwargs

    started = time.monotonic()
    assert not wait_for_child(start("whole"))
    lifetime = time.monotonic() - started
    for renames in KILL_BEFORE_RENAME:
        kill(before=renames)
    for place in PLACES[:NUM_WITHIN_EPOCH]:
        kill(after=place)
    for _ in range(2):
        kill_at_random(start, lifetime, generator)
    for place in PLACES[NUM_WITHIN_EPOCH:]:
        kill(after=place)
    assert not wait_for_child(start())
    print("killed at all moments")


if __name__ == "__main__":
    main()
