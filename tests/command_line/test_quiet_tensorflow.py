"""Tests of `command_line.quiet_tensorflow`."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
TENSORFLOW = """
import os
import types

os.write(2, b"a note")
{ending}
config = types.SimpleNamespace(
    list_physical_devices=lambda: os.write(2, b", another")
)
"""
PACKAGE = """
from command_line.quiet_tensorflow import start_tensorflow

start_tensorflow()
"""
COMMAND = """
import sys

import tensorflow
from command_line.errors import UserError, exit_on_user_error

if sys.argv[-1] == "wrong":
    with exit_on_user_error():
        raise UserError("a mistake")
print(sys.argv[1:])
print("ours", file=sys.stderr)
"""


def run(*arguments, **environment):
    # The tests choose a level of their own.
    inherited = {**os.environ}
    inherited.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def start(tmp_path):
    """Runs a command of a package, by a TensorFlow that ends as is said."""

    def start_with(*arguments, ending="", program=("-m", "package")):
        (tmp_path / "package").mkdir()
        for name, text in (
            ("tensorflow.py", TENSORFLOW.format(ending=ending)),
            ("package/__init__.py", PACKAGE),
            ("package/__main__.py", COMMAND),
        ):
            (tmp_path / name).write_text(text, "utf-8")
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        return run(*program, *arguments, PYTHONPATH=path)

    return start_with


def test_notes_are_hidden_and_what_follows_is_not(start):
    done = start("--beam-size", "4")

    assert done.stderr == "ours\n"
    assert done.stdout == "['--beam-size', '4']\n"


def test_notes_show_where_the_import_fails(start):
    done = start(ending="raise ImportError('a library is missing')")

    assert done.stderr.startswith("a note")
    assert done.stderr.endswith("ImportError: a library is missing\n")


def test_debug_leaves_tensorflow_alone_and_reaches_no_parser(start):
    done = start("--debug", "x")

    assert done.stdout == "['x']\n"
    assert done.stderr == "a noteours\n"


def test_debug_shows_where_an_error_comes_from(start):
    done = start("--debug", "wrong")

    assert done.returncode == 2
    assert 'raise UserError("a mistake")' in done.stderr
    assert done.stderr.endswith("error: a mistake\n")


def test_a_program_that_imports_the_package_decides_itself(start):
    done = start(program=("-c", "import package, tensorflow"))

    assert done.stderr == "a note"


@pytest.mark.parametrize(
    "command",
    [
        "train",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            # The other commands of these packages, which the demo runs, start
            # alike.
            for name in ("convert", "translate.bulk", "paper.table1")
        ),
    ],
)
def test_a_command_says_nothing_but_its_own(command):
    done = run("-m", command, "--help")

    assert done.stderr == ""
    assert done.stdout.startswith(f"usage: python -m {command} ")
