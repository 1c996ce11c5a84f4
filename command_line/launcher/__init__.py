"""Runs a command of an installation: `keras-transformer train --run-dir ...`.

A wheel has this package as `keras_transformer_commands`, and the packages of
the commands within it. `keras-transformer NAME` is `python -m NAME` there.
"""

import argparse
import importlib
import os
import pathlib
import runpy
import sys

# The commands, and the dataclass of each one's options.
COMMANDS = {
    "train": "train.options.Options",
    "train.average": "train.average.AverageOptions",
    "train.distill": "train.options.Options",
    "train.grid": "train.options.Options",
    "export": "export.__main__.ExportOptions",
    "translate": "translate.__main__.TranslateOptions",
    "translate.evaluate": "translate.evaluate.EvaluateOptions",
    "export.check": "export.check.CheckOptions",
    "translate.check_server": "translate.check_server.CheckServerOptions",
    "translate.explain": "translate.explain.ExplainOptions",
    "export.page": "export.page.PageOptions",
    "serve": "serve.options.ServeOptions",
    "translate.bulk": "translate.bulk.__main__.BulkOptions",
    "convert": None,  # It has commands of its own.
}
# Options that a command has besides those.
OWN_OPTIONS = {
    "train.distill": "train.distill.DistillationOptions",
    "train.grid": "train.grid.GridOptions",
}
SHELLS = ("bash", "zsh", "tcsh")
# The extras that commands need, where it is not `train`.
EXTRAS = {"convert": "convert", "serve": "web", "translate.bulk": "bulk"}


def find_commands() -> pathlib.Path:
    """Returns the folder that has the packages of the commands."""
    here = pathlib.Path(__file__).parent
    # In a clone this is `command_line/launcher`.
    return here if (here / "train").exists() else here.parent.parent


def make_completion(shell: str) -> str:
    """Returns the script that completes commands and options in a shell."""
    import shtab

    from command_line.options import add_options

    parser = argparse.ArgumentParser(prog="keras-transformer")
    commands = parser.add_subparsers()
    for name in COMMANDS:
        command = commands.add_parser(
            name, help=f"python -m {name}", conflict_handler="resolve"
        )
        for options in filter(None, (COMMANDS[name], OWN_OPTIONS.get(name))):
            module, _, cls = options.rpartition(".")
            add_options(command, getattr(importlib.import_module(module), cls))
    return shtab.complete(parser, shell)


def main() -> None:
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(
            f"usage: keras-transformer COMMAND ...\n{', '.join(COMMANDS)}\n"
            "Each command has --help. Versions: python -m keras_transformer\n"
            'Completion: eval "$(keras-transformer --print-completion bash)"'
        )
        return
    folder = str(find_commands())
    sys.path.insert(0, folder)
    wanted, names = "the command", COMMANDS
    if name == "--print-completion":
        if rest and rest[0] in SHELLS:
            print(make_completion(rest[0]))
            return
        wanted, names, name = name, SHELLS, " ".join(rest) or "nothing"
    if name not in names:
        print(
            f"error: {wanted} must be one of {', '.join(names)}. Received: {name}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    # Commands start others, such as workers and `translate`.
    paths = [folder, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Python's own name of a program that `-m` names, see quiet_tensorflow.py.
    sys.argv[:] = ["-m", *rest]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        if find_commands().joinpath(error.name.partition(".")[0]).exists():
            raise  # A bug.
        extra = EXTRAS.get(name, "train")
        print(
            f"error: {name} needs the extra `{extra}`: pip install "
            f"'keras_transformer[{extra}]', from a clone '.[{extra}]'. "
            f"Received: no module {error.name}",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
