"""The folder of a run: what it was started with, whose it is."""

import contextlib
import csv
import fcntl
import importlib.metadata
import json
import os
import pathlib
import socket
import tempfile
from collections.abc import Collection
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.errors import refuse_damage
from keras_transformer import PRESETS
from keras_transformer import Preset
from train.data.atomic_files import write_atomically
from train.data.corpus import Corpus
from train.loop import multi_worker

PACKAGES = ("keras", "numpy", "sentencepiece", "tensorflow")


def describe(
    arguments: dict,
    preset: Preset,
    train_pairs: Corpus,
    validation_pairs: Corpus,
    init: dict[str, str] | None = None,
) -> dict:
    """Returns what `arguments.json` says of a run.

    Args:
        arguments: The options by name, as JSON.
        preset: The preset, with the numbers that were replaced.
        train_pairs: The training corpus.
        validation_pairs: The validation set.
        init: Digests of what the run starts from, if not from chance.
    """
    return {
        "arguments": arguments,
        "preset": {"description": preset.description, **preset.numbers()},
        "corpus": {
            "train": train_pairs.digest(),
            "validation": validation_pairs.digest(),
        },
        "init": init or {},
        "packages": {
            name: importlib.metadata.version(name) for name in PACKAGES
        },
    }


def read(run_dir: pathlib.Path, option: str) -> dict:
    """Returns what `arguments.json` says of the run in a folder.

    Args:
        run_dir: The folder.
        option: Name of the option that gave it, for the message.

    Raises:
        UserError: If the folder holds no run.
    """
    path = run_dir / "arguments.json"
    if not path.exists():
        raise UserError(
            f"{option} must be the folder of a run. Received: {run_dir}, "
            f"which has no {path.name}"
        )
    return load(path)


def load(path: pathlib.Path) -> dict:
    """Reads an `arguments.json`.

    Raises:
        UserError: If it is damaged.
    """
    with refuse_damage(path):
        description = json.loads(path.read_text(encoding="utf-8"))
        # Here what is missing, or of another kind, is damage.
        read_preset(description)
        for name in ("vocabulary_size", "max_length"):
            int(description["arguments"][name])
        return description


def read_preset(description: dict) -> Preset:
    """Returns the preset that a description tells of."""
    numbers = dict(description["preset"])
    return Preset(numbers.pop("description")).replace(**numbers)


def find(
    run_dir: pathlib.Path, description: dict, not_compared: Collection[str]
) -> dict | None:
    """Returns the description of the run in a folder, or `None` without one.

    No update hangs on the number of those that follow: with another `--steps`
    the run goes on for longer, or ends earlier, if it is not beyond that. Nor
    does any hang on the validation set.

    Args:
        run_dir: The folder.
        description: That of the run which is asked for.
        not_compared: Names of arguments that may be others.

    Raises:
        UserError: If it holds a run of other arguments, or of text that has
            changed since; the message says what differs. Or if it holds a
            model that was converted.
    """
    path = run_dir / "arguments.json"
    if not path.exists():
        return None
    known = load(path)
    if "origin" in known:
        raise UserError(
            "--run-dir must be another folder than that of a converted model; "
            f"--init-from starts from it. Received: --run-dir {run_dir}"
        )
    with refuse_damage(path):
        int(known["steps_per_epoch"])
        expected = {
            **known,
            "preset": {**known["preset"]},
            # Another one moves no update.
            "corpus": {
                **known["corpus"],
                "validation": description["corpus"]["validation"],
            },
        }
    reached = max(saved_steps(run_dir / "checkpoints"), default=0)
    steps = description["arguments"]["steps"]
    if steps is not None and steps >= reached:
        expected["preset"]["steps"] = steps
    parts = ("arguments", "preset", "corpus", "init")
    found = differences(expected, description, parts, not_compared)
    if found:
        raise UserError(
            f"{run_dir} holds a run of other arguments; take them, or "
            f"another --run-dir. {'; '.join(found)}"
        )
    return known


def differences(
    known: dict,
    asked: dict,
    parts: tuple[str, ...],
    not_compared: Collection[str],
) -> list[str]:
    """Tells in which entries of some parts two descriptions differ.

    An option that is used nowhere may be missing in one: it may be newer.
    """
    found = []
    for part in parts:
        before, after = known.get(part, {}), asked[part]
        if part == "preset":
            # A number that is newer than the run has its default there.
            before = {**PRESETS["base"].numbers(), **before}
            before["description"] = after["description"]
        for name in [*after, *(before.keys() - after.keys())]:
            old, new = before.get(name), after.get(name)
            used = any(x is not None and x is not False for x in (old, new))
            compared = part != "arguments" or name not in not_compared
            if old != new and used and compared:
                found.append(f"{name}: {old} there, {new} here")
    return found


def read_history(run_dir: pathlib.Path) -> list[dict]:
    """Returns the rows of `history.csv`, one for each whole round."""
    path = run_dir / "history.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def saved_steps(folder: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns the prefixes of a folder's checkpoints by step, ascending."""
    # The index comes last, so what has one is whole.
    paths = [path.with_suffix("") for path in folder.glob("ckpt-*.index")]
    return dict(sorted((int(path.name[5:]), path) for path in paths))


def claim(run_dir: pathlib.Path, description: dict) -> None:
    """Writes `arguments.json`: from now on the folder is this run's."""
    take_back_short_round(run_dir, description)
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_atomically(run_dir / "arguments.json", text.encode())


def take_back_short_round(run_dir: pathlib.Path, description: dict) -> None:
    """Takes back the last row of the history if a run goes on within it.

    That round was a short one since the run ended. Without its row it is one
    that was interrupted, and ends as in a run that was longer from the start.
    """
    rows = read_history(run_dir)
    if not rows or not (run_dir / "arguments.json").exists():
        return
    known = load(run_dir / "arguments.json")
    end = known["preset"]["steps"]
    is_short = end % known["steps_per_epoch"] and int(rows[-1]["step"]) == end
    if is_short and description["preset"]["steps"] > end:
        path = run_dir / "history.csv"
        lines = path.read_bytes().splitlines(keepends=True)
        write_atomically(path, b"".join(lines[:-1]))


@contextlib.contextmanager
def locked_or_temporary(run_dir: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields the folder to write to: of several workers the chief has it.

    The others write nothing that anyone looks for.
    """
    if multi_worker.is_chief():
        with locked(run_dir):
            yield run_dir
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield pathlib.Path(folder)


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
