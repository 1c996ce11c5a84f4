import argparse
import dataclasses
import importlib
import pathlib

import pytest

from command_line.options import (
    CommandParser,
    add_options,
    mutually_exclusive,
    option,
    part,
    positive,
    read_options,
    replace_values,
    values_of,
)


@dataclasses.dataclass(frozen=True)
class Size:
    beam_size: int = option(4, "beams", kind=positive(int), tags=("place",))
    speed: float = option(2.5e9, "FLOP/s (default: %(default)g)", kind=float)


@dataclasses.dataclass(frozen=True)
class Which:
    last: int | None = option(None, "the latest", kind=int)
    best: int | None = option(None, "the best", kind=int)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    text: str = option(help="what to read", tags=("place",))
    quiet: bool = option(False, "say nothing")
    names: str = option("", "never sets (default: none)", metavar="NAME")
    size: Size = part("size", "how large")
    which: Which = mutually_exclusive()


def parse(*argv):
    parser = argparse.ArgumentParser()
    add_options(parser, Options)
    return read_options(parser.parse_args(argv), Options)


def test_parts_become_the_dataclasses_that_they_are():
    options = parse("--text=x", "--beam-size=7", "--last=1")

    assert options == Options(text="x", size=Size(7), which=Which(last=1))
    assert parse("--text=x", "--quiet", "--best=1").quiet
    assert values_of(options) == {
        "text": "x",
        "quiet": False,
        "names": "",
        "beam_size": 7,
        "speed": 2.5e9,
        "last": 1,
        "best": None,
    }


def test_values_are_replaced_wherever_they_are():
    options = parse("--text=x", "--beam-size=7", "--last=1")

    changed = replace_values(options, text="y", beam_size=3, best=2)

    size, which = Size(3), Which(last=1, best=2)
    assert changed == Options(text="y", size=size, which=which)
    with pytest.raises(TypeError, match="no such options: beams"):
        replace_values(options, beams=3)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--last=1"], "required: --text"),
        (["--text=x"], "one of the arguments --last --best is required"),
        (["--text=x", "--last=1", "--best=1"], "not allowed with"),
        (["--text=x", "--beam-size=0"], "invalid positive int value: '0'"),
        (
            ["--text=x", "--beam-size=99999999999"],
            "invalid positive int value: '99999999999'",
        ),
        (["--text=x", "--last=1", "--quie"], "unrecognized arguments: --quie"),
    ],
)
def test_refuses_what_was_not_declared(argv, message, capsys):
    with pytest.raises(SystemExit):
        parse(*argv)

    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["copy"]])
def test_an_unknown_option_is_refused_in_one_line_with_the_nearest(command, capsys):
    parser = CommandParser(prog="files")
    part = parser.add_subparsers().add_parser("copy") if command else parser
    part.add_argument("--source-folder")

    with pytest.raises(SystemExit):
        parser.parse_args([*command, "--sorce-folder", "x"])

    assert capsys.readouterr().err == (
        f"{' '.join(['files', *command])}: error: unrecognized arguments: "
        "--sorce-folder x (the nearest: --source-folder)\n"
    )


@dataclasses.dataclass(frozen=True)
class Place:
    folder: pathlib.Path = option(help="where", kind=pathlib.Path)


@pytest.mark.parametrize("path", ["gs://bucket/run", "s3://b", "hdfs://n/x"])
def test_a_path_is_one_of_this_machine(capsys, path):
    parser = argparse.ArgumentParser()
    add_options(parser, Place)

    assert parser.parse_args(["--folder=a:b/c"]).folder == pathlib.Path("a:b/c")
    with pytest.raises(SystemExit) as exit_:
        parser.parse_args(["--folder", path])

    assert exit_.value.code == 2
    assert capsys.readouterr().err.endswith(
        "--folder: must be a path on this machine: mount what is elsewhere, "
        f"or copy it. Received: {path}\n"
    )


@pytest.mark.parametrize(
    "module",
    [
        "train.options",
        "convert.__main__",
        "export.__main__",
        "export.check",
        "translate.evaluate",
        "translate.explain",
        "serve.__main__",
        "translate.__main__",
        "paper.table2",
    ],
)
def test_help_explains_each_option_of_a_command(module, monkeypatch, capsys):
    actions = []
    add = argparse.ArgumentParser.add_argument

    def record(self, *args, **kwargs):
        actions.append(add(self, *args, **kwargs))
        return actions[-1]

    monkeypatch.setattr(argparse._ActionsContainer, "add_argument", record)
    command = importlib.import_module(module)
    start = getattr(command, "main", None) or command.parse_options

    for subcommand in getattr(command, "COMMANDS", [None]):
        with pytest.raises(SystemExit) as exit_:
            start([subcommand, "--help"] if subcommand else ["--help"])
        assert exit_.value.code == 0
        assert "--debug" in capsys.readouterr().out

    assert len(actions) > 3
    assert [action.dest for action in actions if not action.help] == []
