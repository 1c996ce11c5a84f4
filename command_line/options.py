"""Command-line options, declared once as fields of frozen dataclasses.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Search:
        beam_size: int = option(4, "beams a sentence", kind=positive(int))

The field is the option `--beam-size`. Its help ends in the default, unless the
help contains it, as `(default: none)`. A dataclass of such dataclasses holds
all options; each part has a title in `--help`:

    @dataclasses.dataclass(frozen=True)
    class Options:
        search: Search = part("search")
"""

import argparse
import dataclasses
import difflib
import itertools
import math
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

TAGS = "tags"
PART = "part"


def option(
    default: Any = dataclasses.MISSING,
    help: str = "",
    kind: Callable[[str], Any] = str,
    tags: tuple[str, ...] = (),
    **kwargs: Any,
) -> Any:
    """Declares an option, as a field of a dataclass.

    Args:
        default: Default value. Without a default the option is required;
            `False` makes it a switch.
        help: Text of `--help`, with the unit.
        kind: Function that parses the value, such as `positive(int)`. A
            `pathlib.Path` must be on this machine. `bool` with the default
            `None` also makes `--no-…`, which gives `False`.
        tags: Words by which `option_names_tagged` finds the option.
        **kwargs: Arguments of `argparse`: `choices`, `metavar`, `nargs`.
    """
    arguments = {"help": help, **kwargs}
    if default is False:
        arguments["action"] = "store_true"
    elif kind is bool:
        arguments["action"] = argparse.BooleanOptionalAction
    else:
        arguments["type"] = local_path if kind is pathlib.Path else kind
        if default is dataclasses.MISSING:
            arguments["required"] = True
        elif default not in (None, "") and "(default" not in help:
            arguments["help"] += " (default: %(default)s)"
    metadata = {"arguments": arguments, TAGS: tags}
    return dataclasses.field(default=default, metadata=metadata)


def part(title: str, description: str | None = None) -> Any:
    """Declares a part of the options: a dataclass, with a title."""
    return dataclasses.field(metadata={PART: (title, description)})


def mutually_exclusive() -> Any:
    """Declares a dataclass of options, exactly one of which must be given."""
    return dataclasses.field(metadata={PART: None})


def add_options(parser: argparse.ArgumentParser, cls: type) -> None:
    """Adds the options of a dataclass to a parser or a group.

    Names may not be abbreviated, since a later option may make them ambiguous.
    A parser also gets `--debug`, which has taken effect before
    (`quiet_tensorflow.py`).
    """
    parser.allow_abbrev = False
    if isinstance(parser, argparse.ArgumentParser):
        parser.add_argument(
            "--debug",
            action="store_true",
            help="show TensorFlow's log, and the traceback of an error",
        )
    for field in dataclasses.fields(cls):
        if PART in field.metadata:
            titles = field.metadata[PART]
            group = (
                parser.add_argument_group(*titles)
                if titles
                else parser.add_mutually_exclusive_group(required=True)
            )
            add_options(group, field.type)
            continue
        arguments = dict(field.metadata["arguments"])
        if "required" not in arguments:
            arguments["default"] = field.default
        parser.add_argument(flag(field.name), **arguments)


class CommandParser(argparse.ArgumentParser):
    """Refuses a wrong command line in one line, without the list of all options."""

    def parse_known_args(self, args=None, namespace=None):
        found, rest = super().parse_known_args(args, namespace)
        if rest:  # Those of a subcommand, too, which knows its options.
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def error(self, message):
        if message.startswith("unrecognized arguments"):
            known = re.findall(r"--[a-z-]+", self.format_usage())
            given = re.findall(r"--[a-z-]+", message)
            near = [difflib.get_close_matches(name, known, n=1) for name in given]
            if any(near):
                message += f" (the nearest: {', '.join(itertools.chain(*near))})"
        self.exit(2, f"{self.prog}: error: {message}\n")


def parse_or_show_examples(
    parser: argparse.ArgumentParser, argv: list[str] | None, examples: str
) -> argparse.Namespace:
    """Parses a command line; without arguments shows examples instead.

    Raises:
        SystemExit: With code 2, if there are no arguments or wrong ones.
    """
    if not (sys.argv[1:] if argv is None else argv):
        print(
            f"{examples.strip()}\n\nAll options: {parser.prog} --help", file=sys.stderr
        )
        raise SystemExit(2)
    return parser.parse_args(argv)


def parse_command(
    name: str, description: str, cls: type, argv: list[str] | None
) -> Any:
    """Returns the options of `python -m NAME`, a dataclass."""
    parser = CommandParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, cls)
    return read_options(parser.parse_args(argv), cls)


def read_options(args: argparse.Namespace, cls: type) -> Any:
    """Makes a dataclass from the parsed options."""
    return cls(
        **{
            field.name: read_options(args, field.type)
            if PART in field.metadata
            else getattr(args, field.name)
            for field in dataclasses.fields(cls)
        }
    )


def values_of(options: Any) -> dict[str, Any]:
    """Returns the values of all options by name, those of parts included."""
    values = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        values.update(
            values_of(value) if PART in field.metadata else {field.name: value}
        )
    return values


def replace_values(options: Any, **values: Any) -> Any:
    """Returns options with other values, those of parts included."""
    known = values_of(options)
    if unknown := values.keys() - known.keys():
        raise TypeError(f"there are no such options: {', '.join(unknown)}")
    return read_options(argparse.Namespace(**known | values), type(options))


def declared_options(cls: type) -> dict[str, dataclasses.Field]:
    """Returns the fields of all options by name, those of parts included."""
    fields = {}
    for field in dataclasses.fields(cls):
        if PART in field.metadata:
            fields |= declared_options(field.type)
        else:
            fields[field.name] = field
    return fields


def option_names_tagged(cls: type, tag: str) -> tuple[str, ...]:
    """Returns the names of the options that have a tag."""
    fields = declared_options(cls).items()
    return tuple(name for name, field in fields if tag in field.metadata[TAGS])


def flag(name: str) -> str:
    """Returns `--batch-tokens` for `batch_tokens`."""
    return f"--{name.replace('_', '-')}"


def local_path(text: str) -> pathlib.Path:
    """Parses a path, for argparse; refuses URLs such as `gs://…`."""
    if "://" in text:
        raise argparse.ArgumentTypeError(
            "must be a path on this machine: mount what is elsewhere, or copy "
            f"it. Received: {text}"
        )
    return pathlib.Path(text)


def positive(kind: type) -> Callable[[str], Any]:
    """Returns a parser of numbers above zero, for argparse.

    Ints must be below 2**31.
    """
    most = math.inf if kind is float else 2**31

    def parse(text: str) -> Any:
        value = kind(text)
        if not 0 < value < most:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"  # argparse shows it.
    return parse


def natural(text: str) -> int:
    """Parses an int that is not negative, for argparse."""
    value = int(text)
    if value < 0:
        raise ValueError
    return value
