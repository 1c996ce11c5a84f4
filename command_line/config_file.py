"""Reads options from a YAML file, and formats them as YAML.

JSON is YAML, so the `arguments.json` of a run can be read, too.
"""

import argparse
import dataclasses
import difflib
import pathlib
import reprlib
from typing import Any

import yaml

from command_line.errors import UserError
from command_line.options import declared_options, flag, values_of

NULLS = ("", "~", "null")
# Options of the command line that a file does not have.
NOT_OF_FILES = ("config", "print_config")


def read_config(argv: list[str], cls: type) -> list[str]:
    """Returns the options of the file of `--config` as words of a command line.

    Of a run's `arguments.json` they are the entry `"arguments"`.

    Args:
        argv: The command line, maybe with `--config`.
        cls: Dataclass of the options that the file may have.
    """
    declared = declared_options(cls)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", **declared["config"].metadata["arguments"])
    path = parser.parse_known_args(argv)[0].config
    if path is None:
        return []
    config = read_yaml(path)
    if isinstance(config.get("arguments"), dict):
        config = dict(config["arguments"])
        config.pop("source_vocabulary_size", None)  # That of --init-from.
    known = {name: x for name, x in declared.items() if name not in NOT_OF_FILES}
    return as_command_line(config, known, path)


def read_yaml(path: pathlib.Path) -> dict:
    """Reads a YAML file of entries by name; numbers and words stay text.

    YAML 1.1 would read `no`, the code of a language, as `False`, and `1e-4` as
    text, so each option parses its own value.
    """
    try:
        content = yaml.load(path.read_bytes(), yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        found = " ".join(str(error).split())
        raise UserError(f"{path} must be YAML. Received: {found}") from None
    if not isinstance(content, dict):
        raise UserError(
            f"{path} must hold options, such as `seed: 7`. "
            f"Received: {reprlib.repr(content)}"
        )
    return content


def as_command_line(
    config: dict, declared: dict[str, dataclasses.Field], path: pathlib.Path
) -> list[str]:
    """Returns options of a YAML file as the words of a command line.

    Args:
        config: The values by name; those that are null are left out.
        declared: The options that the file may have, by name.
        path: The file, for messages.

    Raises:
        UserError: If a name is unknown, or if a value is of the wrong type.
    """
    words = []
    for key, value in config.items():
        name = key.replace("-", "_")
        if name not in declared:
            near = difflib.get_close_matches(name, declared, n=3, cutoff=0)
            raise UserError(
                f"{path} must hold options of this command, such as "
                f"{', '.join(near)}. Received: {name}"
            )
        if value not in NULLS:
            words += to_words(name, value, declared[name].metadata["arguments"], path)
    return words


def to_words(name: str, value: Any, arguments: dict, path: pathlib.Path) -> list[str]:
    """Returns the words of one option, after its value is checked."""
    if "action" in arguments:
        check_value(name, value, {"choices": ["true", "false"]}, path)
        if value == "true":
            return [flag(name)]
        can_be_off = arguments["action"] is argparse.BooleanOptionalAction
        return [flag(f"no_{name}")] if can_be_off else []
    if "nargs" not in arguments:
        check_value(name, value, arguments, path)
        return [f"{flag(name)}={value}"]
    values = value if isinstance(value, list) else [value]
    for item in values:
        check_value(name, item, arguments, path)
    return [flag(name), *values]


def check_value(name: str, value: Any, arguments: dict, path: pathlib.Path) -> None:
    """Refuses a value that the option does not take."""
    kind, choices = arguments.get("type", str), arguments.get("choices")
    try:
        if isinstance(value, str) and (not choices or kind(value) in choices):
            kind(value)
            return
    except (ValueError, argparse.ArgumentTypeError):
        pass
    wanted = f"one of {', '.join(choices)}" if choices else f"of type {kind.__name__}"
    raise UserError(
        f"{name} in {path} must be {wanted}. Received: {reprlib.repr(value)}"
    )


def format_config(options: Any) -> str:
    """Returns the options that differ from their defaults, as YAML."""
    declared = declared_options(type(options))
    given = {
        name: value if isinstance(value, bool | int | float | list) else str(value)
        for name, value in values_of(options).items()
        if name not in NOT_OF_FILES and value != declared[name].default
    }
    return yaml.safe_dump(given, allow_unicode=True, sort_keys=False)
