"""Writes the mean of some checkpoints of a run (Section 6.1)."""

import argparse
import dataclasses
import pathlib

from command_line.errors import UserError, exit_on_user_error
from command_line.options import (
    add_options,
    mutually_exclusive,
    option,
    positive,
    read_options,
)
from train.run.checkpoint_averaging import load_mean, make_model_of_run, save_model
from train.run.run_folder import saved_steps


@dataclasses.dataclass(frozen=True)
class CheckpointChoice:
    last: int | None = option(None, "the N latest", kind=positive(int), metavar="N")
    steps: list[int] | None = option(
        None, "those after these updates", kind=int, nargs="+", metavar="STEP"
    )


@dataclasses.dataclass(frozen=True)
class AverageOptions:
    run_dir: pathlib.Path = option(help="folder of a run", kind=pathlib.Path)
    which: CheckpointChoice = mutually_exclusive()
    output: pathlib.Path = option(
        help="the file to write", kind=pathlib.Path, metavar="FILE.keras"
    )


def choose_checkpoints(
    run_dir: pathlib.Path, which: CheckpointChoice
) -> list[pathlib.Path]:
    """Returns the prefixes of the selected checkpoints; refuses missing ones."""
    kept = saved_steps(run_dir / "checkpoints")
    if which.last:
        option, asked, steps = "--last", which.last, [*kept][-which.last :]
    else:
        option, asked, steps = "--steps", " ".join(map(str, which.steps)), which.steps
    enough = which.steps or len(steps) == asked
    if not enough or len({*steps}) < len(steps) or {*steps} - {*kept}:
        raise UserError(
            f"{option} must be different ones of the checkpoints there, "
            f"{', '.join(map(str, kept)) or 'none'}. Received: {asked}"
        )
    return [kept[step] for step in steps]


def run(options: AverageOptions) -> None:
    output = options.output
    if output.suffix != ".keras":
        raise UserError(f"--output must end in .keras. Received: {output}")
    model = make_model_of_run(options.run_dir)
    paths = choose_checkpoints(options.run_dir, options.which)
    load_mean(model, paths)
    save_model(output, model)
    names = ", ".join(str(path) for path in paths)
    print(f"{output} is the mean of {names}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m train.average", description=__doc__
    )
    add_options(parser, AverageOptions)
    args = parser.parse_args(argv)
    with exit_on_user_error():
        run(read_options(args, AverageOptions))


if __name__ == "__main__":
    main()
