"""Run folder: its history, the paths of its checkpoints and its lock."""

import contextlib
import csv
import fcntl
import os
import pathlib
import socket
import tempfile
from collections.abc import Iterator

from command_line.errors import UserError
from train.loop import multi_worker


def read_history(run_dir: pathlib.Path) -> list[dict]:
    """Returns the rows of `history.csv`, one for each complete epoch."""
    path = run_dir / "history.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def checkpoints_by_step(folder: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns the prefixes of a folder's checkpoints by step, ascending."""
    # The index comes last, so it marks a complete checkpoint.
    paths = [path.with_suffix("") for path in folder.glob("ckpt-*.index")]
    return dict(sorted((int(path.name[5:]), path) for path in paths))


def step_of(prefix: str | pathlib.Path) -> int:
    """Returns the update after which a checkpoint was written."""
    return int(str(prefix).rpartition("-")[2])


def delete_checkpoint(prefix: pathlib.Path) -> None:
    """Deletes the files of a checkpoint, the index first."""
    for path in sorted(prefix.parent.glob(f"{prefix.name}.*"), reverse=True):
        path.unlink()


@contextlib.contextmanager
def locked_or_temporary(run_dir: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields the locked run folder, or a temporary one on other workers.

    Only the chief writes files that are kept.
    """
    if multi_worker.is_chief():
        with locked(run_dir):
            yield run_dir
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield pathlib.Path(folder)


@contextlib.contextmanager
def locked(run_dir: pathlib.Path) -> Iterator[None]:
    """Locks a run folder against a second run.

    The kernel releases the lock when the process ends, however it ends; a
    killed run leaves the file, but no lock.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"another run is writing to {run_dir}: {file.read().strip()}. "
                "Wait for its end, or take another --run-dir"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
