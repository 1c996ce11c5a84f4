"""Checks the files of a version, of any format."""

import dataclasses
import pathlib
from collections.abc import Callable

from command_line.errors import describe_error
from export.bundle import file_layout

LEFT_OUT = "left out: a version that has changed is not run"


@dataclasses.dataclass
class Check:
    """Result of one check.

    Attributes:
        name: String.
        notes: Strings, the items that were checked.
        problems: Strings, one for each failure.
        left_out: String, the reason for skipping the check, or `""`.
    """

    name: str
    notes: list[str]
    problems: list[str]
    left_out: str = ""


def check_loading(name: str, load: Callable) -> tuple[Check, object]:
    """Returns the result of `load` as a check, and what it loaded or `None`."""
    try:
        return Check(name, [], []), load()
    except Exception as error:  # TensorFlow raises many kinds.
        return Check(name, [], [describe_error(error)]), None


def check_files(folder: pathlib.Path, wanted: dict[str, dict]) -> Check:
    """Compares size and digest of each file with the recorded `list_files`."""
    found = file_layout.list_files(folder)
    problems = []
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            problems.append(f"{name}: missing")
        elif name not in wanted:
            problems.append(f"{name}: not recorded")
        elif wanted[name] != found[name]:
            one, other = (
                f"{file['bytes']} bytes of SHA-256 {file['sha256'][:16]}..."
                for file in (wanted[name], found[name])
            )
            problems.append(f"{name}: wanted {one}, received {other}")
    size = sum(file["bytes"] for file in found.values())
    notes = [f"{len(found)} files of {size:,} bytes, by unsigned digests"]
    return Check("files", notes, problems)
