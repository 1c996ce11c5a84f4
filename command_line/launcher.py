"""Runs a command of an installation: `keras-transformer train --run-dir ...`.

In a wheel the packages of the commands lie in `keras_transformer_commands`,
where no other package finds them. `keras-transformer NAME` is `python -m MODULE`
with that folder on the path.
"""

import argparse
import importlib.metadata
import os
import pathlib
import sys

# The folder of `train`, `export` and the others, in a clone and in a wheel.
FOLDER = pathlib.Path(__file__).parent.parent
# The commands by name: what `python -m` runs.
COMMANDS = {
    "train": "train",
    "export": "export",
    "check": "export.check",
    "browser-page": "export.browser_page",
    "translate": "translate",
    "evaluate": "translate.evaluate",
    "explain": "translate.explain",
    "serve": "serve",
    "convert": "convert",
}
DISTRIBUTION = "keras-transformer-translation"
# Another project, whose module has our module's name.
OTHER_DISTRIBUTION = "keras-transformer"
# The extras of `setup.cfg` that install what modules import; of others, `train`.
EXTRAS = {"convert": "convert", "serve": "web"}


def install_command(extra: str) -> str:
    """Returns what installs an extra beside an installation."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def refuse_other_project() -> None:
    """Exits if another project is installed into the folder of our module."""
    try:
        files = importlib.metadata.files(OTHER_DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:
        return
    if any(file.parts[0] == "keras_transformer" for file in files):
        raise SystemExit(
            f"error: {OTHER_DISTRIBUTION} is another project, whose module "
            "keras_transformer takes the place of ours: pip uninstall "
            f"{OTHER_DISTRIBUTION} {DISTRIBUTION}, then install {DISTRIBUTION} alone"
        )


def main() -> None:
    refuse_other_project()
    parser = argparse.ArgumentParser(
        "keras-transformer", description="Each command has --help."
    )
    parser.add_argument(
        "command", choices=COMMANDS, metavar="COMMAND", help=", ".join(COMMANDS)
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args(sys.argv[1:] or ["--help"])
    # Commands start others, such as workers, which inherit this.
    paths = [str(FOLDER), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Python would else import a `train.py` from where the command is run.
    os.environ["PYTHONSAFEPATH"] = "1"
    module = COMMANDS[args.command]
    os.execv(sys.executable, [sys.executable, "-m", module, *args.arguments])
