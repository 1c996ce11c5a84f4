"""The mean of checkpoints (Section 6.1), as a command too.

Averages the weights of some checkpoints of a run: the last ones, the best ones
(train with --keep-best), or those of given updates.
"""

import argparse
import json
import pathlib
import zipfile
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from keras_transformer import Transformer
from train.options import positive
from train.run import run_folder
from train.run.best import best_steps
from train.run.run_folder import read_history
from train.run.run_folder import saved_steps

# What TensorFlow raises on a checkpoint that is damaged, or of other shapes.
UNREADABLE = (tf.errors.OpError, AssertionError, IndexError, ValueError)


def average_checkpoints(
    transformer: Transformer,
    paths: Iterable[str | pathlib.Path],
    moving: bool = False,
) -> Transformer:
    """Returns a float32 Transformer with the mean of some weights.

    The sum runs in float64. The weights of `transformer` stay as they are.

    Args:
        transformer: A model of the shape that was trained.
        paths: Prefixes of checkpoints, one at least.
        moving: Bool, whether to take the exponential moving averages that the
            optimizer kept, instead of the weights themselves.

    Raises:
        UserError: If a checkpoint cannot be read, or is of another shape.
    """
    config = {**transformer.get_config(), "dtype": "float32"}
    averaged = Transformer.from_config(config)
    averaged.build()
    # A checkpoint reaches all weights through its optimizer alone: TensorFlow
    # does not look into a Keras layer's lists of layers.
    holder = tf.Module()
    name = "averages" if moving else "_trainable_variables"
    setattr(holder, name, [w.value for w in averaged.weights])
    checkpoint = tf.train.Checkpoint(optimizer=holder)
    paths = list(paths)
    sums = [np.zeros(w.shape, np.float64) for w in averaged.weights]
    for path in paths:
        try:
            status = checkpoint.read(str(path))
            # The moments of the optimizer are there too, and not wanted.
            status.assert_existing_objects_matched().expect_partial()
        except UNREADABLE as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"{path} holds no weights of this run's model: {reason}"
            ) from None
        for total, weights in zip(sums, averaged.get_weights(), strict=True):
            total += weights
    averaged.set_weights([total / len(paths) for total in sums])
    return averaged


def write_model(
    path: pathlib.Path,
    model: Transformer,
    checkpoints: Iterable[str | pathlib.Path],
    moving: bool = False,
) -> None:
    """Writes a `.keras` file beside `path` and renames it.

    Its zip comment says, in JSON, what the weights are the mean of: it cannot
    be parted from them, and Keras does not look at it.

    Args:
        path: The file.
        model: What `average_checkpoints` returned.
        checkpoints: Prefixes of the checkpoints that it was made of.
        moving: Bool, whether of their moving averages.
    """
    beside = path.with_suffix(".part.keras")
    model.save(beside)
    names = [pathlib.Path(prefix).name for prefix in checkpoints]
    with zipfile.ZipFile(beside, "a") as file:
        file.comment = json.dumps(
            {"checkpoints": names, "moving_average": moving}
        ).encode()
    beside.replace(path)


def model_of(run_dir: pathlib.Path) -> tuple[Transformer, bool]:
    """Makes the model that a run trains, with random weights.

    Returns:
        The model, and whether the run keeps moving averages of its weights.

    Raises:
        UserError: If the folder holds no run.
    """
    description = run_folder.read(run_dir, "--run-dir")
    arguments = description["arguments"]
    model = Transformer.from_preset(
        run_folder.read_preset(description),
        arguments["vocabulary_size"],
        sequence_length=arguments["max_length"],
        name="transformer",
    )
    return model, arguments.get("average_decay") is not None


def choose(args: argparse.Namespace) -> list[pathlib.Path]:
    """Returns the prefixes of the checkpoints that are asked for.

    Raises:
        UserError: If they are not all there; the message lists those that are.
    """
    last = saved_steps(args.run_dir / "checkpoints")
    best = saved_steps(args.run_dir / "best")
    if args.last:
        # An interrupted round has one too, nearly the next one's.
        ends = [int(row["step"]) for row in read_history(args.run_dir)]
        last = {step: path for step, path in last.items() if step in ends}
        return pick(sorted(last)[-args.last :], last, "--last", args.last)
    if args.best:
        steps = best_steps(args.run_dir)[: args.best]
        return pick(steps, best, "--best", args.best)
    there = {**best, **last}
    if len(set(args.steps)) < len(args.steps) or set(args.steps) - set(there):
        raise UserError(
            "--steps must be different ones of "
            f"{', '.join(map(str, sorted(there))) or 'none, as none is there'}"
            f". Received: {', '.join(map(str, args.steps))}"
        )
    return [there[step] for step in args.steps]


def pick(steps: list[int], there: dict, option: str, wanted: int):
    """Returns the prefixes of `steps`, if they are as many as wanted."""
    if len(steps) < wanted:
        raise UserError(
            f"{option} must be at most {len(there)}, the checkpoints there: "
            f"{', '.join(map(str, sorted(there))) or 'none'}. "
            f"Received: {wanted}"
        )
    return [there[step] for step in steps]


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m train.checkpoints", description=__doc__
    )
    average = parser.add_subparsers(
        required=True, metavar="average"
    ).add_parser(
        "average", help="write the mean of some checkpoints as a .keras file"
    )
    path = {"type": pathlib.Path, "required": True}
    average.add_argument("--run-dir", **path, help="folder of a run")
    which = average.add_mutually_exclusive_group(required=True)
    count = {"type": positive(int), "metavar": "N"}
    which.add_argument("--last", **count, help="the N latest")
    which.add_argument("--best", **count, help="the N best that were kept")
    which.add_argument(
        "--steps",
        type=int,
        nargs="+",
        metavar="STEP",
        help="those after these updates",
    )
    average.add_argument(
        "--output", **path, metavar="FILE.keras", help="the file to write"
    )
    return parser.parse_args(argv)


def run(args: argparse.Namespace) -> None:
    if args.output.suffix != ".keras":
        raise UserError(f"--output must end in .keras. Received: {args.output}")
    model, moving = model_of(args.run_dir)
    paths = choose(args)
    averaged = average_checkpoints(model, paths, moving)
    write_model(args.output, averaged, paths, moving)
    what = "the moving averages in " if moving else ""
    names = ", ".join(str(path) for path in paths)
    print(f"{args.output} is the mean of {what}{names}")


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    with exit_on_user_error():
        run(args)


if __name__ == "__main__":
    main()
