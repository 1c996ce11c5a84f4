"""Reads `model.json` of a run, and chooses the sample sentences of an export.

`{"sha256": …, "validation": {"loss": …, "bleu": …}, "samples": [{"source": …,
"reference": …, "translation": …}]}`; any key may be missing.
"""

import hashlib
import itertools
import json
import pathlib
import sys

from command_line.errors import UserError, refuse_damage
from command_line.text_files import read_lines

MAX_SAMPLES = 5


def read_notes(run_dir: pathlib.Path) -> dict:
    """Returns the content of `model.json`, if it describes the present model.

    Raises:
        UserError: If the file is damaged.
    """
    path = run_dir / "model.json"
    if not path.exists():
        return {}
    with refuse_damage(path):
        notes = json.loads(path.read_text("utf-8"))
        noted = notes.get("sha256")
    with (run_dir / "model.keras").open("rb") as file:
        if noted == hashlib.file_digest(file, "sha256").hexdigest():
            return notes
    print(
        f"{path} is of another model.keras, so its scores and samples are left out",
        file=sys.stderr,
    )
    return {}


def choose_samples(notes: dict, path: pathlib.Path | None) -> list[dict]:
    """Returns the sample sentences of an export; the list may be empty.

    Args:
        notes: Result of `read_notes`, used if there is no `path`.
        path: Path of a text file, whose first sentences are used.

    Returns:
        Dicts of `"source"` and, if known, `"reference"` and `"translation"`.

    Raises:
        UserError: If the file holds no sentence.
    """
    if path is None:
        return notes.get("samples", [])[:MAX_SAMPLES]
    lines = (line for line in read_lines(path) if line.strip())
    samples = [{"source": line} for line in itertools.islice(lines, MAX_SAMPLES)]
    if not samples:
        raise UserError(f"--samples must hold a sentence. Received: {path}")
    return samples


def format_scores(validation: dict) -> str:
    """Returns the validation scores of a model in one line."""
    scores = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in validation.items()
    )
    return f"on the validation set: {scores}"
