"""The folder of a run: what it was started with, whose it is."""

import argparse
import dataclasses
import importlib.metadata
import json
import pathlib

from keras_transformer import Preset
from keras_transformer.errors import UserError
from train.corpus import Corpus

# Where a run happens changes nothing in it.
PLACES = ("run_dir", "devices", "cache_dir", "data_dir")
PACKAGES = ("keras", "numpy", "sentencepiece", "tensorflow")


def describe(
    args: argparse.Namespace,
    preset: Preset,
    train_pairs: Corpus,
    validation_pairs: Corpus,
) -> dict:
    """Returns what `arguments.json` says of a run."""
    return {
        "arguments": {
            name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in vars(args).items()
            if name not in PLACES
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
