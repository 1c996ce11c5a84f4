"""Reads the default search options that `convert` recorded in a run folder."""

import math
import pathlib
import reprlib

from command_line.errors import UserError

KINDS = {
    "beam_size": (int,),
    "length_penalty": (int, float),
    "max_extra_length": (int,),
    "penalty_offset": (int, float),
}


def read_decoding(description: dict, path: pathlib.Path) -> dict:
    """Returns what a run says of its search: options of an export by name.

    Args:
        description: What its `arguments.json` holds.
        path: Path of that file.

    Returns:
        Dict of numbers, empty where the run says nothing.

    Raises:
        UserError: If that is anything but numbers by these names.
    """
    found = description.get("decoding", {})
    if not isinstance(found, dict):
        raise UserError(
            f"decoding in {path} must be a JSON object. "
            f"Received: {reprlib.repr(found)}"
        )
    for name, kinds in KINDS.items():
        value = found.get(name, 0)
        if type(value) not in kinds or not math.isfinite(value):
            wanted = "an int" if kinds == (int,) else "a number"
            raise UserError(
                f"{name} of decoding in {path} must be {wanted}. "
                f"Received: {reprlib.repr(value)}"
            )
    return {name: found[name] for name in KINDS if name in found}
