"""Run folder: its `arguments.json`, history, checkpoint paths and lock."""

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
    """Returns the description of a run, the content of `arguments.json`.

    Args:
        arguments: The options by name, as JSON.
        preset: The preset, with the numbers that were replaced.
        train_pairs: The training corpus.
        validation_pairs: The validation set.
        init: Digests of the model that the run starts from, if any.
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
    """Reads the `arguments.json` of a run folder.

    Args:
        run_dir: The folder.
        option: Name of the option of the folder, for the message.

    Raises:
        UserError: If the folder does not hold a run.
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
        # A missing entry, or one of another type, means a damaged file.
        read_preset(description)
        for name in ("vocabulary_size", "max_length"):
            int(description["arguments"][name])
        return description


def read_preset(description: dict) -> Preset:
    """Returns the preset of a description."""
    numbers = dict(description["preset"])
    return Preset(numbers.pop("description")).replace(**numbers)


def find(
    run_dir: pathlib.Path, description: dict, not_compared: Collection[str]
) -> dict | None:
    """Returns the description of the run in a folder, or `None`.

    An update depends neither on the number of later updates nor on the
    validation set. So both may change: with another `--steps` the run becomes
    longer, or shorter, if it has not passed that update.

    Args:
        run_dir: The folder.
        description: Description of the requested run.
        not_compared: Names of arguments that may differ.

    Raises:
        UserError: If the folder holds a run of other arguments or of other
            text (the message names the differences), or a converted model.
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
            # It does not affect the weights.
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
    """Returns the entries of some parts in which two descriptions differ.

    An option that has its default may be missing in one of them.
    """
    found = []
    for part in parts:
        before, after = known.get(part, {}), asked[part]
        if part == "preset":
            # A number that is missing in the file has its default.
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
    """Returns the rows of `history.csv`, one for each complete epoch."""
    path = run_dir / "history.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def saved_steps(folder: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns the prefixes of a folder's checkpoints by step, ascending."""
    # The index comes last, so it marks a complete checkpoint.
    paths = [path.with_suffix("") for path in folder.glob("ckpt-*.index")]
    return dict(sorted((int(path.name[5:]), path) for path in paths))


def claim(run_dir: pathlib.Path, description: dict) -> None:
    """Writes `arguments.json`, which assigns the folder to this run."""
    take_back_short_round(run_dir, description)
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_atomically(run_dir / "arguments.json", text.encode())


def take_back_short_round(run_dir: pathlib.Path, description: dict) -> None:
    """Removes the last row of the history if that epoch was a short one.

    The epoch was short because the run ended. Without its row it counts as
    interrupted, and a longer run completes it like an uninterrupted run.
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

    Raises:
        UserError: If another process holds the lock; the message names it.
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
