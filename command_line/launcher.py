"""Runs a command of an installation: `keras-transformer train --run-dir ...`.

In a wheel the packages of the commands lie in `keras_transformer_commands`,
where no other package finds them. `keras-transformer NAME` is `python -m MODULE`
with that folder on the path.
"""

import argparse
import os
import pathlib
import sys

# The folder of `train`, `export` and the others, in a clone and in a wheel.
FOLDER = pathlib.Path(__file__).parent.parent
# The commands by name: what `python -m` runs.
COMMANDS = {
    "train": "train",
    "average": "train.average",
    "distill": "train.distill",
    "export": "export",
    "check": "export.check",
    "browser-page": "export.browser_page",
    "translate": "translate",
    "evaluate": "translate.evaluate",
    "explain": "translate.explain",
    "bulk": "translate.bulk",
    "serve": "serve",
    "convert": "convert",
}
# The extras of `setup.cfg` that install what modules import; of others, `train`.
EXTRAS = {"convert": "convert", "serve": "web", "translate.bulk": "bulk"}


def main() -> None:
    parser = argparse.ArgumentParser(
        "keras-transformer",
        description="Each command has --help. Versions: python -m keras_transformer",
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
