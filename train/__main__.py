"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, a translation set of
TensorFlow Datasets, or the embedded corpus (--dataset demo). The same command
continues a run that was interrupted, and with more --steps one that has ended.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile

import numpy as np
import sentencepiece
import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.errors import first_line
from keras_transformer import Preset
from train import fit
from train import options
from train.arguments import choose_round_steps
from train.arguments import parse_arguments
from train.arguments import resolve
from train.data import batches
from train.data import encoded_corpus
from train.data import sources
from train.data.corpus import Corpus
from train.data.corpus import Pairs
from train.data.corpus import demo_pairs
from train.data.vocabulary import EncodedPairs
from train.loop import cluster
from train.loop import signals
from train.run import checkpoints
from train.run import fine_tuning
from train.run import run_folder
from train.watch import report
from train.watch.attention_pictures import AttentionPictures
from train.watch.validation_bleu import ValidationBleu


def write_demo_tests(folder: pathlib.Path) -> None:
    """Writes the test sets of the embedded corpus, for `export.evaluate`."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("test", "unseen"):
        pairs = demo_pairs(split)
        for suffix, lines in (("en", pairs.sources), ("es", pairs.targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{suffix}").write_text(text, encoding="utf-8")


def encode_corpus(
    args: argparse.Namespace,
    pairs: tuple[Corpus, Corpus],
    continues: bool,
    proto: bytes | None,
) -> list[encoded_corpus.Encoded]:
    """Encodes both corpora, with the run's vocabulary, a given or a new one."""
    path = args.run_dir / "tokenizer.model"
    folder = args.cache_dir or args.run_dir / "encoded"
    if not continues:
        if proto is None:
            size = args.vocabulary_size
            proto = encoded_corpus.cached_vocabulary(pairs[0], size, folder)
        run_folder.write_atomically(path, proto)
    proto = path.read_bytes()
    encoded = [
        encoded_corpus.encode_corpus(text, proto, args.max_length, folder)
        for text in reversed(pairs)  # Mistakes in the small one show first.
    ]
    return encoded[::-1]


def report_corpus(
    args: argparse.Namespace,
    preset: Preset,
    encoded: list[encoded_corpus.Encoded],
    settings: fit.FitSettings,
    num_replicas: int,
) -> None:
    """Says and writes what the run trains on."""
    plan = batches.BatchPlan(encoded[0].pairs, args.batch_tokens, args.seed)
    report.write_report(
        report.make_report(
            *encoded,
            plan,
            preset,
            args.vocabulary_size,
            args.max_length,
            args.precision,
            num_replicas * settings.micro_batches(plan, num_replicas),
        ),
        args.run_dir,
    )


def make_bleu(
    args: argparse.Namespace, corpus: Corpus
) -> ValidationBleu | None:
    """Makes what `--validate-bleu` asks for."""
    if args.validate_bleu is None:
        return None
    pairs = Pairs(*(list(side) for side in zip(*corpus, strict=True)))
    return ValidationBleu(
        pairs,
        (args.run_dir / "tokenizer.model").read_bytes(),
        args.run_dir / "logs" / "translations",
        args.validate_bleu,
        args.validation_beam_size,
    )


def make_pictures(
    args: argparse.Namespace, pairs: EncodedPairs
) -> AttentionPictures | None:
    """Makes what draws the first pair; of several workers the chief does."""
    if not cluster.is_chief():
        return None
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(args.run_dir / "tokenizer.model")
    )
    return AttentionPictures(
        *(
            ids.flat[: ids.offsets[1]].tolist()
            for ids in (pairs.sources, pairs.targets)
        ),
        processor.id_to_piece,
        args.run_dir / "logs" / "attention",
    )


def make_settings(
    args: argparse.Namespace, round_steps: int
) -> fit.FitSettings:
    names = [field.name for field in dataclasses.fields(fit.FitSettings)]
    given = {name: getattr(args, name) for name in names if name in args}
    return fit.FitSettings(
        **{
            **given,
            "round_steps": round_steps,
            # Of several workers the chief keeps what anyone looks for.
            "keep": args.average if cluster.is_chief() else 1,
            "keep_best": (args.keep_best or 0) if cluster.is_chief() else 0,
            "best_by": args.best_by or "loss",
        }
    )


def check_workers(
    args: argparse.Namespace, description: dict, strategy
) -> None:
    """Refuses workers that would train on something else than the chief."""
    tokenizer = (args.run_dir / "tokenizer.model").read_bytes()
    what = {
        **description["arguments"],
        **description["corpus"],
        "tokenizer": tokenizer,
    }
    for name in run_folder.DIGESTED:
        del what[name]
    cluster.check_equal(strategy, what)


def write_model(args: argparse.Namespace, transformer, state) -> None:
    """Writes `model.keras` from the checkpoints, and says what comes next."""
    paths, what = state.checkpoints, "the mean of the weights in"
    moving = args.average_decay is not None
    if moving:
        paths, what = paths[-1:], "the moving average of the weights in"
    path = args.run_dir / "model.keras"
    averaged = checkpoints.average_checkpoints(transformer, paths, moving)
    checkpoints.write_model(path, averaged, paths, moving)
    print(
        f"{path} is {what} {len(paths)} checkpoint{'s'[: len(paths) > 1]}. "
        f"Next:\n"
        f"  python -m export --run-dir {args.run_dir} --export-dir EXPORT_DIR"
    )


def run(args: argparse.Namespace) -> None:
    """Trains and writes the model, in a folder that is this run's alone."""
    start = (
        fine_tuning.load_finished(args.init_from) if args.init_from else None
    )
    preset = resolve(args, start)
    pairs = sources.load_corpus(args)
    init = start.digests() if start else None
    description = run_folder.describe(args, preset, *pairs, init)
    if args.from_arguments:
        options.say_what_differs(args.from_arguments, description)
    there = run_folder.find(args.run_dir, description)
    description["round_steps"] = choose_round_steps(args, preset, there)
    if args.dataset == "demo":
        write_demo_tests(args.run_dir / "demo")
    proto = start.model_proto if start else None
    encoded = encode_corpus(args, pairs, there is not None, proto)
    if args.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = fit.make_strategy(args.devices)
    if cluster.is_multi_worker():
        check_workers(args, description, strategy)
        # The others know no run that goes on, and would choose anew.
        (chiefs,) = cluster.broadcast(
            strategy, [np.array(description["round_steps"])]
        )
        description["round_steps"] = int(chiefs)
    settings = make_settings(args, description["round_steps"])
    try:
        task = fit.make_task(
            preset, args.vocabulary_size, args.max_length, settings, strategy
        )
    except ValueError as error:  # A layer refuses a number of the preset.
        raise UserError(str(error)) from None
    if start:
        with strategy.scope():
            task.transformer.set_weights(start.transformer.get_weights())
    # From here on the folder is this run's; a mistake before claims nothing.
    run_folder.claim(args.run_dir, description)
    report_corpus(
        args, preset, encoded, settings, strategy.num_replicas_in_sync
    )
    try:
        state = fit.fit(
            task,
            *(each.pairs for each in encoded),
            preset.recipe.steps,
            settings,
            strategy,
            args.run_dir,
            make_bleu(args, pairs[1]),
            make_pictures(args, encoded[1].pairs),
        )
    except tf.errors.ResourceExhaustedError as error:
        if "No space left on device" in str(error):
            raise
        raise UserError(
            "the device has too little memory; take a lower "
            "--max-tokens-per-replica, which leaves the updates as they are. "
            f"Received: {first_line(error)}"
        ) from None
    if cluster.is_chief():
        write_model(args, task.transformer, state)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error(), signals.handled_by(signals.exit_now):
        args = parse_arguments(argv, __doc__)
        if not cluster.is_multi_worker():
            with run_folder.locked(args.run_dir):
                run(args)
        elif cluster.is_chief():
            with run_folder.locked(args.run_dir):
                cluster.end_with_the_others(lambda: run(args))
        else:
            # The others write nothing that anyone looks for.
            with tempfile.TemporaryDirectory() as folder:
                args.run_dir = pathlib.Path(folder)
                cluster.end_with_the_others(lambda: run(args))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # Someone follows a log.
    with signals.exit_at_once():
        main()
