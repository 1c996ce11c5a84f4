"""Runs a command of an installation: `keras-transformer train --run-dir ...`.

A wheel has this package as `keras_transformer_commands`, and the packages of
the commands within it. `keras-transformer NAME` is `python -m NAME` there.
"""

import os
import pathlib
import runpy
import sys

COMMANDS = (
    "train",
    "train.average",
    "train.distill",
    "export",
    "export.translate",
    "export.evaluate",
    "export.check",
    "export.explain",
    "export.page",
    "export.serve",
    "export.bulk",
    "convert",
)


def find_commands() -> pathlib.Path:
    """Returns the folder that has the packages of the commands."""
    here = pathlib.Path(__file__).parent
    # In a clone this is `command_line/launcher`.
    return here if (here / "train").exists() else here.parent.parent


def main() -> None:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(
            f"usage: keras-transformer COMMAND ...\n{', '.join(COMMANDS)}\n"
            "Each command has --help. Versions: python -m keras_transformer"
        )
        return
    if name not in COMMANDS:
        print(
            f"error: the command must be one of {', '.join(COMMANDS)}. "
            f"Received: {name}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    folder = str(find_commands())
    sys.path.insert(0, folder)
    # Commands start others, such as workers and `export.translate`.
    paths = [folder, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Python's own name of a program that `-m` names, see quiet_tensorflow.py.
    sys.argv[:] = ["-m", *rest]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
