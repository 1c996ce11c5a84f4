"""The options of `python -m train`, and what follows from them."""

import argparse
import pathlib

from command_line.errors import UserError
from keras_transformer import PRESETS
from keras_transformer import Preset
from keras_transformer.presets import find_preset
from train.data import sources
from train.data.corpus import FILES
from train.data.sources import option
from train.fit import PRECISIONS
from train.options import add_quality_arguments
from train.options import add_start_arguments
from train.options import fraction
from train.options import parse
from train.options import positive
from train.options import resolve_quality
from train.run import fine_tuning

DEMO_VOCABULARY_SIZE = 1_500
PARSING_VOCABULARY_SIZE = 16_000  # Section 6.3.
VOCABULARY_SIZE = 8_000
MAX_LENGTH = 256
PARSING_MAX_LENGTH = 512  # A tree has more symbols than its sentence words.
PRESET = "base"
PARSING_PRESET = "parsing"
ROUNDS = 40


def parse_arguments(
    argv: list[str] | None = None, description: str | None = None
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m train", description=description
    )
    text = parser.add_argument_group("corpus")
    sources.add_arguments(text)
    text.add_argument(
        "--vocabulary-size",
        type=int,
        help="subword pieces of both languages together (default: "
        f"{VOCABULARY_SIZE}; {DEMO_VOCABULARY_SIZE} for the demo, "
        f"{PARSING_VOCABULARY_SIZE} for parsing)",
    )
    text.add_argument(
        "--max-length",
        type=positive(int),
        help="longest side of a pair, in tokens; longer pairs are dropped "
        f"(default: {MAX_LENGTH}; {PARSING_MAX_LENGTH} for parsing)",
    )
    text.add_argument(
        "--cache-dir",
        type=pathlib.Path,
        help="folder for encoded text that several runs may share (default: "
        "encoded/ in the run folder)",
    )
    add_training_arguments(parser.add_argument_group("training"))
    add_quality_arguments(parser.add_argument_group("quality"))
    add_start_arguments(parser.add_argument_group("another run"))
    model = parser.add_argument_group(
        "model", "each replaces a number of the preset"
    )
    for name, value in PRESETS["base"].numbers().items():
        updates = name in ("steps", "warmup_steps")
        model.add_argument(
            option(name),
            type=positive(int) if updates else type(value),
            metavar=type(value).__name__,
        )
    return parse(
        parser,
        argv,
        {
            "dataset": FILES,
            "mixture": FILES[:2],
            **dict.fromkeys(FILES[:2], ("dataset", "mixture")),
            **dict.fromkeys(FILES[2:], ("dataset",)),
            "train_trees": ("dataset", "mixture", *FILES),
        },
    )


def add_training_arguments(group) -> None:
    group.add_argument(
        "--run-dir",
        type=pathlib.Path,
        required=True,
        help="folder for everything that is written",
    )
    group.add_argument(
        "--preset",
        metavar="NAME",
        help=f"one of {', '.join(PRESETS)} (Table 3, Section 6.3, and three of "
        f"ours; default: {PRESET}, {PARSING_PRESET} for parsing, or that of "
        "--init-from)",
    )
    group.add_argument(
        "--batch-tokens",
        type=positive(int),
        default=25_000,
        help="positions of a side in an update, over all devices (Section 5.1; "
        "default: %(default)s)",
    )
    group.add_argument(
        "--round-steps",
        type=positive(int),
        help="updates between validations and checkpoints (default: a "
        f"{ROUNDS}th of all, 100 at least)",
    )
    group.add_argument(
        "--average",
        type=positive(int),
        default=5,
        metavar="N",
        help="checkpoints whose mean is the final model (Section 6.1; default: "
        "%(default)s)",
    )
    group.add_argument(
        "--learning-rate-scale",
        type=positive(float),
        default=1.0,
        help="factor of the paper's learning rate (Section 5.3; default: "
        "%(default)s)",
    )
    group.add_argument(
        "--precision",
        choices=list(PRECISIONS),
        default="float32",
        help="of matrix products; weights, softmax and loss stay float32 "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--max-tokens-per-replica",
        type=positive(int),
        metavar="N",
        help="positions of a side that a device takes at once; a larger share "
        "of an update is taken in several turns (default: no limit)",
    )
    group.add_argument(
        "--clip-norm",
        type=positive(float),
        metavar="NORM",
        help="shrink longer gradients to this norm (default: never)",
    )
    group.add_argument(
        "--average-decay",
        type=fraction,
        metavar="DECAY",
        help="make the final model the exponential moving average of the "
        "weights, such as 0.999, instead of the mean of checkpoints",
    )
    group.add_argument(
        "--devices",
        nargs="+",
        metavar="DEVICE",
        help="such as GPU:0 GPU:1 (default: all GPUs, else the CPU)",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of weights, dropout and order (default: %(default)s)",
    )
    group.add_argument(
        "--deterministic",
        action="store_true",
        help="let a GPU, too, give the same bits each time, at some cost; a "
        "CPU does so without it",
    )


def resolve(
    args: argparse.Namespace, start: fine_tuning.FinishedRun | None
) -> Preset:
    """Fills in defaults that hang on other arguments; returns the preset."""
    sources.check_arguments(args)
    resolve_quality(args)
    preset = choose_preset(args, start)
    if start:
        start.check_shape(preset, args.vocabulary_size, args.max_length)
        args.vocabulary_size = start.arguments["vocabulary_size"]
        if args.max_length is None:
            args.max_length = start.arguments["max_length"]
    parsing = args.task == sources.PARSING
    if args.max_length is None:
        args.max_length = PARSING_MAX_LENGTH if parsing else MAX_LENGTH
    if args.vocabulary_size is None:
        size = PARSING_VOCABULARY_SIZE if parsing else VOCABULARY_SIZE
        demo = args.dataset == "demo"
        args.vocabulary_size = DEMO_VOCABULARY_SIZE if demo else size
    return preset


def choose_round_steps(
    args: argparse.Namespace, preset: Preset, there: dict | None
) -> int:
    """Returns the updates of a round: a run that goes on keeps them."""
    if args.round_steps is not None:
        return args.round_steps
    return (
        there["round_steps"]
        if there
        else max(100, preset.recipe.steps // ROUNDS)
    )


def choose_preset(
    args: argparse.Namespace, start: fine_tuning.FinishedRun | None
) -> Preset:
    """Returns the preset, with the numbers that options replace."""
    if start and args.preset is None:
        preset = start.preset
    else:
        args.preset = args.preset or (
            PARSING_PRESET if args.task == sources.PARSING else PRESET
        )
        try:
            preset = find_preset(args.preset)
        except ValueError as error:
            message = str(error).replace("`preset`", "--preset")
            raise UserError(message.replace("preset=", "--preset ")) from None
    changes = {
        name: getattr(args, name)
        for name in preset.numbers()
        if getattr(args, name) is not None
    }
    return preset.replace(**changes)
