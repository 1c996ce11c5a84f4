"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, or the embedded corpus
(--dataset demo). The same command continues a run that was interrupted, and
with more --steps one that has ended.
"""

import argparse
import dataclasses
import pathlib
import tempfile

from keras_transformer import PRESETS
from keras_transformer import Preset
from keras_transformer.errors import UserError
from keras_transformer.errors import exit_on_user_error
from keras_transformer.presets import find_preset
from train import checkpoints
from train import cluster
from train import corpus
from train import fine_tuning
from train import fit
from train import options
from train import run_folder
from train import signals
from train import vocabulary
from train.options import fraction
from train.options import option
from train.options import positive
from train.validation import ValidationBleu

FILES = (
    "train_source",
    "train_target",
    "validation_source",
    "validation_target",
)
DEMO_VOCABULARY_SIZE = 1_500
VOCABULARY_SIZE = 8_000
MAX_LENGTH = 256
PRESET = "base"
ROUNDS = 40


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m train",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    path = {"type": pathlib.Path, "metavar": "FILE"}
    text = parser.add_argument_group("corpus")
    text.add_argument(
        "--dataset", choices=["demo"], help="the embedded English-Spanish one"
    )
    for name in FILES:
        text.add_argument(
            option(name), **path, help="UTF-8, one sentence a line, may be gzip"
        )
    text.add_argument(
        "--vocabulary-size",
        type=int,
        help="subword pieces of both languages together (default: "
        f"{VOCABULARY_SIZE}; {DEMO_VOCABULARY_SIZE} for the demo)",
    )
    text.add_argument(
        "--max-length",
        type=positive(int),
        help="longest side of a pair, in tokens; longer pairs are dropped "
        f"(default: {MAX_LENGTH})",
    )
    add_training_arguments(parser.add_argument_group("training"))
    options.add_quality_arguments(parser.add_argument_group("quality"))
    options.add_start_arguments(parser.add_argument_group("another run"))
    model = parser.add_argument_group(
        "model", "each replaces a number of the preset"
    )
    for field in dataclasses.fields(Preset):
        if field.name in ("steps", "warmup_steps"):
            model.add_argument(option(field.name), type=positive(int))
        elif field.name != "description":
            model.add_argument(option(field.name), type=field.type)
    return options.parse(parser, argv, (("dataset",), FILES))


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
        help=f"one of {', '.join(PRESETS)} (Table 3, and two of ours; "
        f"default: {PRESET}, or that of --init-from)",
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
        choices=list(fit.PRECISIONS),
        default="float32",
        help="of matrix products; weights, softmax and loss stay float32",
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
        "--seed", type=int, default=0, help="of weights, dropout and order"
    )


def resolve(
    args: argparse.Namespace, start: fine_tuning.FinishedRun | None
) -> Preset:
    """Fills in defaults that hang on other arguments; returns the preset."""
    given = [option(name) for name in FILES if getattr(args, name)]
    if args.dataset is None and len(given) != len(FILES):
        wanted = ", ".join(option(name) for name in FILES)
        raise UserError(
            f"the corpus must be --dataset demo, or all of {wanted}. "
            f"Received: {', '.join(given) or 'neither'}"
        )
    if args.dataset and given:
        raise UserError(
            "the corpus must be --dataset or files, not both. "
            f"Received: --dataset {args.dataset} and {', '.join(given)}"
        )
    options.resolve_quality(args)
    preset = choose_preset(args, start)
    if start:
        start.check_shape(preset, args.vocabulary_size, args.max_length)
        args.vocabulary_size = start.arguments["vocabulary_size"]
        if args.max_length is None:
            args.max_length = start.arguments["max_length"]
    if args.max_length is None:
        args.max_length = MAX_LENGTH
    if args.vocabulary_size is None:
        args.vocabulary_size = (
            DEMO_VOCABULARY_SIZE if args.dataset else VOCABULARY_SIZE
        )
    if args.round_steps is None:
        args.round_steps = max(100, preset.steps // ROUNDS)
    return preset


def choose_preset(
    args: argparse.Namespace, start: fine_tuning.FinishedRun | None
) -> Preset:
    """Returns the preset, with the numbers that options replace."""
    if start and args.preset is None:
        preset = start.preset
    else:
        args.preset = args.preset or PRESET
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
    return dataclasses.replace(preset, **changes)


def load_corpus(args: argparse.Namespace):
    """Returns the training and the validation pairs."""
    if args.dataset == "demo":
        return corpus.demo_pairs("train"), corpus.demo_pairs("validation")
    return (
        corpus.read_pairs(args.train_source, args.train_target),
        corpus.read_pairs(args.validation_source, args.validation_target),
    )


def write_demo_tests(folder: pathlib.Path) -> None:
    """Writes the test sets of the embedded corpus, for `export.evaluate`."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("test", "unseen"):
        pairs = corpus.demo_pairs(split)
        for suffix, lines in (("en", pairs.sources), ("es", pairs.targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{suffix}").write_text(text, encoding="utf-8")


def encode_corpus(
    args: argparse.Namespace,
    pairs: tuple,
    continues: bool,
    proto: bytes | None,
) -> list[vocabulary.EncodedPairs]:
    """Encodes both corpora, with the run's vocabulary, a given or a new one."""
    path = args.run_dir / "tokenizer.model"
    if not continues:
        if proto is None:
            proto = vocabulary.learn_vocabulary(pairs[0], args.vocabulary_size)
        run_folder.write_atomically(path, proto)
    proto = path.read_bytes()
    encoded = []
    for name, text in zip(("training", "validation"), pairs, strict=True):
        ids, selection = vocabulary.select(text, proto, args.max_length)
        print(selection.report(name))
        encoded.append(ids)
    return encoded


def make_bleu(
    args: argparse.Namespace, pairs: corpus.Pairs
) -> ValidationBleu | None:
    """Makes what `--validate-bleu` asks for."""
    if args.validate_bleu is None:
        return None
    return ValidationBleu(
        pairs,
        (args.run_dir / "tokenizer.model").read_bytes(),
        args.run_dir / "logs" / "translations",
        args.validate_bleu,
        args.validation_beam_size,
    )


def run(args: argparse.Namespace) -> None:
    """Trains and writes the model, in a folder that is this run's alone."""
    start = (
        fine_tuning.load_finished(args.init_from) if args.init_from else None
    )
    preset = resolve(args, start)
    pairs = load_corpus(args)
    init = start.digests() if start else None
    description = run_folder.describe(args, preset, *pairs, init)
    if args.from_arguments:
        options.say_what_differs(args.from_arguments, description)
    continues = run_folder.holds(args.run_dir, description)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    if args.dataset == "demo":
        write_demo_tests(args.run_dir / "demo")
    proto = start.model_proto if start else None
    encoded = encode_corpus(args, pairs, continues, proto)
    settings = fit.FitSettings(
        batch_tokens=args.batch_tokens,
        round_steps=args.round_steps,
        learning_rate_scale=args.learning_rate_scale,
        precision=args.precision,
        max_tokens_per_replica=args.max_tokens_per_replica,
        clip_norm=args.clip_norm,
        average_decay=args.average_decay,
        seed=args.seed,
        keep=args.average,
        keep_best=args.keep_best or 0,
        best_by=args.best_by or "loss",
        patience=args.patience,
    )
    strategy = fit.make_strategy(args.devices)
    if cluster.is_multi_worker():
        tokenizer = (args.run_dir / "tokenizer.model").read_bytes()
        cluster.check_equal(
            strategy,
            {
                **description["arguments"],
                **description["corpus"],
                "tokenizer": tokenizer,
            },
        )
    try:
        task = fit.make_task(
            preset, args.vocabulary_size, args.max_length, settings, strategy
        )
    except ValueError as error:  # A layer refuses a number of the preset.
        raise UserError(str(error)) from None
    if start:
        with strategy.scope():
            task.transformer.set_weights(start.transformer.get_weights())
    parameters = task.transformer.count_params()
    name = args.preset or f"that of {args.init_from}"
    print(f"model: {name}, {parameters:,} parameters")
    # From here on the folder is this run's; a mistake before claims nothing.
    run_folder.claim(args.run_dir, description)
    state = fit.fit(
        task,
        *encoded,
        preset.steps,
        settings,
        strategy,
        args.run_dir,
        make_bleu(args, pairs[1]),
    )
    if not cluster.is_chief():
        return
    paths, what = state.checkpoints, "the mean of"
    if args.average_decay is not None:
        paths, what = paths[-1:], "the moving average of the weights in"
    checkpoints.write_model(
        args.run_dir / "model.keras",
        checkpoints.average_checkpoints(
            task.transformer, paths, args.average_decay is not None
        ),
    )
    print(
        f"{args.run_dir / 'model.keras'} is {what} "
        f"{len(paths)} checkpoint{'s'[: len(paths) > 1]}. Next:\n"
        f"  python -m export --run-dir {args.run_dir} --export-dir EXPORT_DIR"
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error(), signals.handled_by(signals.exit_now):
        args = parse_arguments(argv)
        if not cluster.is_chief():
            # The others write nothing that anyone looks for.
            args.run_dir = pathlib.Path(tempfile.mkdtemp())
        with run_folder.locked(args.run_dir):
            if cluster.is_multi_worker():
                cluster.end_with_the_others(lambda: run(args))
            else:
                run(args)


if __name__ == "__main__":
    main()
