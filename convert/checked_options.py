"""Reads the options of a model, each of which must be known and supported."""

import json
import math
import pathlib
import reprlib
from typing import Any

from command_line.errors import UserError


class CheckedOptions:
    """Options of a model, which are refused with name, file and value."""

    def __init__(self, found: dict, where: Any):
        self.found, self.where = found, where

    def error(self, key: Any, wanted: str, value: Any) -> UserError:
        name = key if str(key).isprintable() else repr(key)
        return UserError(
            f"{name} of {self.where} must be {wanted}. Received: {reprlib.repr(value)}"
        )

    def check(self, supported: dict[str, Any]) -> None:
        """Refuses options without the value of the dict, or one of its tuple."""
        for key, values in supported.items():
            values = values if isinstance(values, tuple) else (values,)
            value = self.found.get(key)
            if value is not None and value not in values:
                raise self.error(key, repr(values[0]), value)

    def number(
        self,
        key: str,
        least: float = 1,
        below: float = math.inf,
        default: float | None = None,
        kind: tuple[type, ...] = (int,),
    ) -> Any:
        value = self.found.get(key)
        value = default if value is None else value
        if type(value) not in kind or not least <= value < below:
            wanted = "an int" if kind == (int,) else "a number"
            most = f", below {below:,}" if below < math.inf else ""
            raise self.error(key, f"{wanted} from {least} on{most}", value)
        return value

    def choice(self, key: str, choices: dict, default: Any) -> Any:
        """Returns what the value of a key stands for."""
        value = self.found.get(key, default)
        # `True` equals 1, and lists are no keys.
        if type(value) is not type(default) or value not in choices:
            raise self.error(key, f"one of {reprlib.repr([*choices])}", value)
        return choices[value]

    def switch(self, key: str, default: bool) -> bool:
        return self.choice(key, {True: True, False: False}, default)

    def heads(self, width_key: str, heads_key: str) -> dict[str, int]:
        """Returns the hyperparameters of heads that divide the width."""
        width, count = self.number(width_key, 4), self.number(heads_key)
        if width % count or width % 2:
            wanted = f"even, and a multiple of the {count} heads"
            raise self.error(width_key, wanted, width)
        sizes = {"hidden_dim": width, "num_heads": count}
        return {**sizes, "key_dim": width // count, "value_dim": width // count}

    def both(self, key: str, default: Any = None) -> Any:
        """Returns a value that both stacks must have; `key` follows their names."""
        one, other = (self.found.get(s + key, default) for s in ("encoder", "decoder"))
        if one is None:
            raise self.error(f"encoder{key}", "present", one)
        if one != other:
            raise self.error(f"decoder{key}", f"{one}, as in the encoder", other)
        return one


def read_json(path: pathlib.Path, kind: type = dict) -> Any:
    """Reads a file that holds a JSON object, or a list."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"--model-dir must hold {path.name}. Received: {path.parent}"
        ) from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        name = {dict: "object", list: "array"}[kind]
        raise UserError(f"{path} must hold a JSON {name}")
    return found
