"""Options of `python -m train` on quality and on other runs."""

import argparse
import json
import pathlib

from command_line.errors import UserError
from train.data.sources import option
from train.run import run_folder

BEAM_SIZE = 4


def positive(kind):
    """Returns a parser of numbers above zero, for argparse."""

    def parse(text: str):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"  # argparse shows it.
    return parse


def fraction(text: str) -> float:
    """Parses a number between 0 and 1, for argparse."""
    value = float(text)
    if not 0 < value < 1:
        raise ValueError
    return value


def add_quality_arguments(group) -> None:
    group.add_argument(
        "--validate-bleu",
        type=positive(int),
        metavar="N",
        help="translate the validation set every N rounds and log its BLEU",
    )
    group.add_argument(
        "--validation-beam-size",
        type=positive(int),
        metavar="K",
        help=f"beams for that; 1 is greedy search (default: {BEAM_SIZE})",
    )
    group.add_argument(
        "--keep-best",
        type=positive(int),
        metavar="N",
        help="checkpoints that stay in RUN_DIR/best, beside the last ones",
    )
    group.add_argument(
        "--patience",
        type=positive(int),
        metavar="N",
        help="stop after N rounds without a better one",
    )
    group.add_argument(
        "--best-by",
        choices=["loss", "bleu"],
        help="what is better, on the validation set (default: loss)",
    )


def add_start_arguments(group) -> None:
    path = {"type": pathlib.Path}
    group.add_argument(
        "--from-arguments",
        **path,
        metavar="FILE",
        help="repeat the run whose arguments.json this is; options beside it "
        "replace its own",
    )
    group.add_argument(
        "--init-from",
        **path,
        metavar="RUN_DIR",
        help="start from that run's model.keras and tokenizer (fine-tuning)",
    )


def resolve_quality(args: argparse.Namespace) -> None:
    """Fills in defaults of the options on quality.

    Raises:
        UserError: If one needs another that is missing.
    """
    watches = args.keep_best or args.patience
    for name, needed, met in (
        ("validation_beam_size", "--validate-bleu N", args.validate_bleu),
        ("best_by", "--keep-best N or --patience N", watches),
    ):
        if getattr(args, name) and not met:
            raise UserError(
                f"{option(name)} needs {needed}. "
                f"Received: {option(name)} {getattr(args, name)} alone"
            )
    if args.best_by == "bleu" and not args.validate_bleu:
        raise UserError(
            "--best-by bleu needs --validate-bleu N. "
            "Received: --best-by bleu alone"
        )
    if args.validate_bleu and not args.validation_beam_size:
        args.validation_beam_size = BEAM_SIZE
    if watches and not args.best_by:
        args.best_by = "loss"


def parse(
    parser: argparse.ArgumentParser,
    argv: list[str] | None,
    puts_aside: dict[str, tuple[str, ...]],
) -> argparse.Namespace:
    """Parses a command line, with --from-arguments for its defaults.

    Args:
        parser: The parser.
        argv: The command line, or `None` for that of the process.
        puts_aside: Options that exclude others: where one is on the command
            line, what the file has of these does not count.

    Raises:
        UserError: If that file holds no arguments of this command.
    """
    args = parser.parse_args(argv)
    if args.from_arguments is None:
        return args
    description = read_description(args.from_arguments)
    # Rounds without the option hang on the steps, which may have grown.
    rounds = description.get("round_steps")
    there = {**description["arguments"], "round_steps": rounds}
    unknown = there.keys() - vars(args).keys()
    if unknown:
        raise UserError(
            "--from-arguments must name options of this command. Received: "
            f"{args.from_arguments} with {', '.join(sorted(unknown))}"
        )
    for name, others in puts_aside.items():
        if getattr(args, name):
            for other in others:
                there.pop(other, None)
    parser.set_defaults(**there)
    return parser.parse_args(argv)


def read_description(path: pathlib.Path) -> dict:
    """Reads the `arguments.json` that --from-arguments names."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        # What `json` makes of other files has no such keys.
        return {**description, "arguments": dict(description["arguments"])}
    except (ValueError, KeyError, TypeError):
        raise UserError(
            "--from-arguments must be the arguments.json of a run. "
            f"Received: {path}"
        ) from None


def say_what_differs(path: pathlib.Path, description: dict) -> None:
    """Tells in what a run is no exact repetition of another one."""
    parts = ("arguments", "preset", "corpus", "init", "packages")
    found = run_folder.differences(read_description(path), description, parts)
    print(
        f"repeats {path} "
        + (f"but for {'; '.join(found)}" if found else "exactly")
    )
