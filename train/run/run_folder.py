"""The folder of a run: what it was started with, whose it is."""

import argparse
import contextlib
import csv
import fcntl
import importlib.metadata
import json
import os
import pathlib
import socket
from collections.abc import Iterator

from command_line.errors import UserError
from keras_transformer import PRESETS
from keras_transformer import Preset
from train.data.corpus import FILES
from train.data.corpus import TREES
from train.data.corpus import Corpus

# Where a run happens changes nothing in it.
PLACES = ("run_dir", "devices", "cache_dir", "data_dir", "from_arguments")
# What these hold counts, and the digests tell it.
DIGESTED = (*FILES, *TREES, "mixture", "init_from")
# Options that say less than the numbers of the preset, or that may change.
NOT_COMPARED = (
    *DIGESTED,
    "preset",
    *PRESETS["base"].numbers(),
    "round_steps",
    "max_tokens_per_replica",
)
PACKAGES = ("keras", "numpy", "sentencepiece", "tensorflow")


def describe(
    args: argparse.Namespace,
    preset: Preset,
    train_pairs: Corpus,
    validation_pairs: Corpus,
    init: dict[str, str] | None = None,
) -> dict:
    """Returns what `arguments.json` says of a run.

    Args:
        args: The options.
        preset: The preset, with the numbers that were replaced.
        train_pairs: The training corpus.
        validation_pairs: The validation set.
        init: Digests of what the run starts from, if not from chance.
    """
    return {
        "arguments": {
            name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in vars(args).items()
            if name not in PLACES
        },
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
    return json.loads(path.read_text(encoding="utf-8"))


def read_preset(description: dict) -> Preset:
    """Returns the preset that a description tells of."""
    numbers = dict(description["preset"])
    return Preset(numbers.pop("description")).replace(**numbers)


def find(run_dir: pathlib.Path, description: dict) -> dict | None:
    """Returns the description of the run in a folder, or `None` without one.

    No update hangs on the number of those that follow: with another `--steps`
    the run goes on for longer, or ends earlier, if it is not beyond that.

    Raises:
        UserError: If it holds a run of other arguments, or of text that has
            changed since; the message says what differs.
    """
    path = run_dir / "arguments.json"
    if not path.exists():
        return None
    there = json.loads(path.read_text(encoding="utf-8"))
    reached = max(saved_steps(run_dir / "checkpoints"), default=0)
    steps = description["arguments"]["steps"]
    if steps is not None and steps >= reached:
        there["preset"]["steps"] = steps
    parts = ("arguments", "preset", "corpus", "init")
    found = differences(there, description, parts)
    round_steps = description["arguments"]["round_steps"]
    if round_steps not in (None, there["round_steps"]):
        found.append(
            f"round_steps: {there['round_steps']} there, {round_steps} here"
        )
    if found:
        raise UserError(
            f"{run_dir} holds a run of other arguments; take them, or "
            f"another --run-dir. {'; '.join(found)}"
        )
    return there


def differences(there: dict, here: dict, parts: tuple[str, ...]) -> list[str]:
    """Tells in which entries of some parts two descriptions differ.

    An option that is used nowhere may be missing in one: it may be newer.
    """
    found = []
    for part in parts:
        known, asked = there.get(part, {}), here[part]
        if part == "preset":
            # A number that is newer than the run has its default there.
            known = {**PRESETS["base"].numbers(), **known}
            known["description"] = asked["description"]
        for name in [*asked, *(known.keys() - asked.keys())]:
            old, new = known.get(name), asked.get(name)
            used = any(x is not None and x is not False for x in (old, new))
            compared = part != "arguments" or name not in NOT_COMPARED
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
