import os
import pathlib
import re
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
    inherited = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "ending", "code", "stdout", "stderr"),
    [
        # Notes are hidden, and what follows is not.
        (
            ["-m", "package", "--beam-size", "4"],
            "",
            0,
            r"\['--beam-size', '4'\]\n",
            "ours\n",
        ),
        (
            ["-m", "package"],
            "raise ImportError('a library is missing')",
            1,
            "",
            "a note.*ImportError: a library is missing\n",
        ),
        # `--debug` leaves TensorFlow alone, and reaches no parser.
        (["-m", "package", "--debug", "x"], "", 0, r"\['x'\]\n", "a noteours\n"),
        (
            ["-m", "package", "--debug", "wrong"],
            "",
            2,
            "",
            'a note.*raise UserError\\("a mistake"\\).*error: a mistake\n',
        ),
        # A program that imports the package decides itself.
        (["-c", "import package, tensorflow"], "", 0, "", "a note"),
    ],
)
def test_a_command_is_quiet_unless_it_fails_or_is_debugged(
    tmp_path, arguments, ending, code, stdout, stderr
):
    (tmp_path / "package").mkdir()
    for name, text in (
        ("tensorflow.py", TENSORFLOW.format(ending=ending)),
        ("package/__init__.py", PACKAGE),
        ("package/__main__.py", COMMAND),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])

    done = run(*arguments, PYTHONPATH=path)

    assert done.returncode == code
    assert re.fullmatch(stdout, done.stdout)
    assert re.fullmatch(stderr, done.stderr, re.DOTALL)


# The demo runs the other commands of these packages, which start alike.
@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "convert", "paper.table1"])
def test_a_command_says_nothing_but_its_own(command):
    done = run("-m", command, "--help")

    assert done.stderr == ""
    assert done.stdout.startswith(f"usage: python -m {command} ")
