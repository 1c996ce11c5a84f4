"""Reads and writes `scores.json`, which `translate.evaluate --record` fills."""

import hashlib
import json
import pathlib

from command_line.errors import refuse_damage
from export.bundle.versions import locked


def read_scores(path: pathlib.Path) -> dict:
    """Returns the scores that are recorded in a version."""
    if not path.exists():
        return {}
    with refuse_damage(path):
        return json.loads(path.read_text("utf-8"))


def record_scores(
    path: pathlib.Path, files: dict[str, pathlib.Path], results: dict
) -> None:
    """Writes scores into a version, under the name of the first file.

    If other files have that name, it gets a number. `files` are those of the
    test set, by the names of their options.
    """
    digests = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files.items()
    }
    first, *_ = files.values()
    export_dir = path.parents[2]
    with locked(export_dir):
        recorded = read_scores(path)
        name, number = first.name, 1
        while name in recorded and recorded[name]["sha256"] != digests:
            number += 1
            name = f"{first.name} {number}"
        recorded[name] = {"sha256": digests, **results}
        path.parent.mkdir(exist_ok=True)
        # Outside the version: `export.check` compares the files in it.
        part = export_dir / f".{path.name}.part"
        part.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
