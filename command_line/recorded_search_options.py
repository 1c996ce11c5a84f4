"""Checks the default search options that a run folder recorded."""

import math
import pathlib
import reprlib
from typing import Any

from command_line.errors import UserError

KINDS = {
    "beam_size": (int,),
    "length_penalty": (int, float),
    "max_extra_length": (int,),
    "penalty_offset": (int, float),
}


def check_decoding(found: Any, path: pathlib.Path) -> dict:
    """Returns the known options in the entry `"decoding"` of an `arguments.json`."""
    if not isinstance(found, dict):
        raise UserError(
            f"decoding in {path} must be a JSON object. Received: {reprlib.repr(found)}"
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
