"""The folder of a run: what it was started with, whose it is."""

import argparse
import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import os
import pathlib
import socket
from collections.abc import Iterator

from keras_transformer import Preset
from keras_transformer.errors import UserError
from train.corpus import Pairs

PACKAGES = ("keras", "numpy", "sentencepiece", "tensorflow")


def describe(
    args: argparse.Namespace,
    preset: Preset,
    train_pairs: Pairs,
    validation_pairs: Pairs,
) -> dict:
    """Returns what `arguments.json` says of a run."""
    return {
        "arguments": {
            name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in vars(args).items()
            if name not in ("run_dir", "devices")
        },
        "preset": dataclasses.asdict(preset),
        "corpus": {
            "train": train_pairs.digest(),
            "validation": validation_pairs.digest(),
        },
        "packages": {
            name: importlib.metadata.version(name) for name in PACKAGES
        },
    }


def holds(run_dir: pathlib.Path, description: dict) -> bool:
    """Tells whether a folder holds the run that is asked for.

    Raises:
        UserError: If it holds a run of other arguments, or of text that has
            changed since; the message says what differs.
    """
    path = run_dir / "arguments.json"
    if not path.exists():
        return False
    there = json.loads(path.read_text(encoding="utf-8"))
    if there["preset"]["steps"] < description["preset"]["steps"]:
        # No earlier update hangs on their number: a run may go on for longer.
        there["arguments"]["steps"] = description["arguments"]["steps"]
    differences = [
        f"{name}: {there[part].get(name)} there, {value} here"
        for part in ("arguments", "corpus")
        for name, value in description[part].items()
        if there[part].get(name) != value
    ]
    if differences:
        raise UserError(
            f"{run_dir} holds a run of other arguments; take them, or "
            f"another --run-dir. {'; '.join(differences)}"
        )
    return True


def claim(run_dir: pathlib.Path, description: dict) -> None:
    """Writes `arguments.json`: from now on the folder is this run's."""
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_atomically(run_dir / "arguments.json", text.encode())


def write_atomically(path: pathlib.Path, content: bytes) -> None:
    """Writes a file beside `path` and renames it: whole, or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    beside.replace(path)


@contextlib.contextmanager
def locked(run_dir: pathlib.Path) -> Iterator[None]:
    """Keeps a second run out of a folder.

    The kernel gives the lock up with the process that holds it, however that
    ends: what a killed run leaves behind is a file, no lock.

    Raises:
        UserError: If another process holds the folder; the message names it.
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
