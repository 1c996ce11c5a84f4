"""Runs a command of an installation: `keras-transformer train --run-dir ...`.

In a wheel the packages of the commands lie in `keras_transformer_commands`,
where no other package finds them. `keras-transformer NAME` is `python -m MODULE`
with that folder on the path.
"""

import argparse
import dataclasses
import os
import pathlib
import sys

# The folder of `train`, `export` and the others, in a clone and in a wheel.
FOLDER = pathlib.Path(__file__).parent.parent


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of `keras-transformer`.

    Attributes:
        module: What `python -m` runs.
        options: Dataclasses of its options, as `MODULE:CLASS`, for completion.
        extra: The extra of `setup.cfg` that installs what it imports.
    """

    module: str
    options: tuple[str, ...] = ()
    extra: str = "train"


TRAIN = "train.options:Options"
COMMANDS = {
    "train": Command("train", (TRAIN,)),
    "train.average": Command("train.average", ("train.average:AverageOptions",)),
    "train.distill": Command(
        "train.distill", (TRAIN, "train.distill:DistillationOptions")
    ),
    "train.grid": Command("train.grid", (TRAIN, "train.grid:GridOptions")),
    "export": Command("export", ("export.__main__:ExportOptions",)),
    "export.translate": Command(
        "export.translate", ("export.translate:TranslateOptions",)
    ),
    "export.evaluate": Command("export.evaluate", ("export.evaluate:EvaluateOptions",)),
    "export.check": Command("export.check", ("export.check:CheckOptions",)),
    "export.explain": Command("export.explain", ("export.explain:ExplainOptions",)),
    "export.page": Command("export.page", ("export.page:PageOptions",)),
    "export.serve": Command(
        "export.serve", ("export.serve.options:ServeOptions",), "web"
    ),
    "export.bulk": Command(
        "export.bulk", ("export.bulk.__main__:BulkOptions",), "bulk"
    ),
    "convert": Command("convert", extra="convert"),
    "completion": Command("command_line.completion"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        "keras-transformer",
        description="Each command has --help. Versions: python -m keras_transformer",
        epilog='Completion in a shell: eval "$(keras-transformer completion bash)"',
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
    module = COMMANDS[args.command].module
    os.execv(sys.executable, [sys.executable, "-m", module, *args.arguments])
