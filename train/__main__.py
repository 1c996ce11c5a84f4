"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, or the embedded corpus
(--dataset demo). The same command continues a run that was interrupted, and
with more --steps one that has ended.
"""

import argparse
import dataclasses
import math
import pathlib

from keras_transformer import PRESETS
from keras_transformer import Preset
from keras_transformer import Transformer
from keras_transformer.errors import UserError
from keras_transformer.errors import exit_on_user_error
from keras_transformer.presets import find_preset
from train import batches
from train import cache
from train import checkpoints
from train import corpus
from train import fit
from train import report
from train import run_folder
from train import sources
from train.sources import option

DEMO_VOCABULARY_SIZE = 1_500
VOCABULARY_SIZE = 8_000
ROUNDS = 40


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m train",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    text = parser.add_argument_group("corpus")
    sources.add_arguments(text)
    text.add_argument(
        "--vocabulary-size",
        type=int,
        help="subword pieces of both languages together (default: "
        f"{VOCABULARY_SIZE}; {DEMO_VOCABULARY_SIZE} for the demo)",
    )
    text.add_argument(
        "--max-length",
        type=positive(int),
        default=256,
        help="longest side of a pair, in tokens; longer pairs are dropped",
    )
    text.add_argument(
        "--cache-dir",
        type=pathlib.Path,
        help="folder for encoded text that several runs may share (default: "
        "encoded/ in the run folder)",
    )
    add_training_arguments(parser.add_argument_group("training"))
    model = parser.add_argument_group(
        "model", "each replaces a number of the preset"
    )
    for field in dataclasses.fields(Preset):
        if field.name in ("steps", "warmup_steps"):
            model.add_argument(option(field.name), type=positive(int))
        elif field.name != "description":
            model.add_argument(option(field.name), type=field.type)
    return parser.parse_args(argv)


def add_training_arguments(group) -> None:
    group.add_argument(
        "--run-dir",
        type=pathlib.Path,
        required=True,
        help="folder for everything that is written",
    )
    group.add_argument(
        "--preset",
        default="base",
        metavar="NAME",
        help=f"one of {', '.join(PRESETS)} (Table 3, and two of ours)",
    )
    group.add_argument(
        "--batch-tokens",
        type=positive(int),
        default=25_000,
        help="positions of a side in an update, over all devices (Section 5.1)",
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
        help="checkpoints whose mean is the final model (Section 6.1)",
    )
    group.add_argument(
        "--learning-rate-scale",
        type=positive(float),
        default=1.0,
        help="factor of the paper's learning rate (Section 5.3)",
    )
    group.add_argument(
        "--precision",
        choices=["float32", "bfloat16"],
        default="float32",
        help="of matrix products; weights, softmax and loss stay float32",
    )
    group.add_argument(
        "--devices",
        nargs="+",
        metavar="DEVICE",
        help="such as GPU:0 GPU:1 (default: all GPUs, else the CPU)",
    )
    group.add_argument(
        "--seed", type=int, default=0, help="of weights, dropout and order"
    )


def positive(kind):
    """Returns a parser of numbers above zero, for argparse."""

    def parse(text: str):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"  # argparse shows it.
    return parse


def resolve(args: argparse.Namespace) -> Preset:
    """Fills in defaults that hang on other arguments; returns the preset."""
    sources.check_arguments(args)
    try:
        preset = find_preset(args.preset)
    except ValueError as error:
        message = str(error).replace("`preset`", "--preset")
        raise UserError(message.replace("preset=", "--preset ")) from None
    changes = {
        field.name: getattr(args, field.name)
        for field in dataclasses.fields(Preset)
        if getattr(args, field.name, None) is not None
    }
    preset = dataclasses.replace(preset, **changes)
    if args.vocabulary_size is None:
        args.vocabulary_size = (
            DEMO_VOCABULARY_SIZE if args.dataset == "demo" else VOCABULARY_SIZE
        )
    if args.round_steps is None:
        args.round_steps = max(100, preset.steps // ROUNDS)
    return preset


def write_demo_tests(folder: pathlib.Path) -> None:
    """Writes the test sets of the embedded corpus, for `export.evaluate`."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("test", "unseen"):
        pairs = corpus.demo_pairs(split)
        for suffix, lines in (("en", pairs.sources), ("es", pairs.targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{suffix}").write_text(text, encoding="utf-8")


def encode_corpus(
    args: argparse.Namespace, pairs: tuple, continues: bool
) -> list[cache.Encoded]:
    """Encodes both corpora, with the run's vocabulary or a new one."""
    path = args.run_dir / "tokenizer.model"
    folder = args.cache_dir or args.run_dir / "encoded"
    if not continues:
        size = args.vocabulary_size
        proto = cache.cached_vocabulary(pairs[0], size, folder)
        run_folder.write_atomically(path, proto)
    proto = path.read_bytes()
    encoded = [
        cache.encode_corpus(text, proto, args.max_length, folder)
        for text in reversed(pairs)  # Mistakes in the small one show first.
    ]
    return encoded[::-1]


def report_corpus(
    args: argparse.Namespace,
    preset: Preset,
    encoded: list[cache.Encoded],
    num_replicas: int,
) -> None:
    """Says and writes what the run trains on."""
    plan = batches.BatchPlan(
        encoded[0].pairs,
        args.batch_tokens,
        args.seed,
        math.lcm(batches.ROW_MULTIPLE, num_replicas),
    )
    report.write_report(
        report.make_report(
            *encoded,
            plan,
            preset,
            args.vocabulary_size,
            args.max_length,
            args.precision,
            num_replicas,
        ),
        args.run_dir,
    )


def write_model(run_dir: pathlib.Path, averaged: Transformer) -> None:
    beside = run_dir / "model.part.keras"
    averaged.save(beside)
    beside.replace(run_dir / "model.keras")


def run(args: argparse.Namespace) -> None:
    preset = resolve(args)
    pairs = sources.load_corpus(args)
    description = run_folder.describe(args, preset, *pairs)
    continues = run_folder.holds(args.run_dir, description)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    if args.dataset == "demo":
        write_demo_tests(args.run_dir / "demo")
    encoded = encode_corpus(args, pairs, continues)
    settings = fit.FitSettings(
        batch_tokens=args.batch_tokens,
        round_steps=args.round_steps,
        learning_rate_scale=args.learning_rate_scale,
        precision=args.precision,
        seed=args.seed,
        keep=args.average,
    )
    strategy = fit.make_strategy(args.devices)
    try:
        task = fit.make_task(
            preset, args.vocabulary_size, args.max_length, settings, strategy
        )
    except ValueError as error:  # A layer refuses a number of the preset.
        raise UserError(str(error)) from None
    # From here on the folder is this run's; a mistake before claims nothing.
    run_folder.claim(args.run_dir, description)
    report_corpus(args, preset, encoded, strategy.num_replicas_in_sync)
    state = fit.fit(
        task,
        *[e.pairs for e in encoded],
        preset.steps,
        settings,
        strategy,
        args.run_dir,
    )
    write_model(
        args.run_dir,
        checkpoints.average_checkpoints(task.transformer, state),
    )
    print(
        f"{args.run_dir / 'model.keras'} is the mean of "
        f"{len(state.checkpoints)} checkpoints. Next:\n"
        f"  python -m export --run-dir {args.run_dir} --export-dir EXPORT_DIR"
    )


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    with exit_on_user_error():
        run(args)


if __name__ == "__main__":
    main()
