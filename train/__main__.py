"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, a translation set of
TensorFlow Datasets, or the embedded corpus (--dataset demo). The same command
continues a run that was interrupted, and with more --steps one that has ended.
"""

import dataclasses
import sys

import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from keras_transformer import Preset
from train import fit
from train.data.corpus import Corpus
from train.data.corpus import write_demo_tests
from train.data.encoded_corpus import cached_vocabulary
from train.data.encoded_corpus import encode_corpus
from train.data.files import write_atomically
from train.loop import cluster
from train.loop import signals
from train.loop.task import TeacherForcing
from train.options import DIGESTED
from train.options import Options
from train.options import parse_options
from train.resolve import describe_run
from train.resolve import load_corpus
from train.resolve import resolve
from train.run import run_folder
from train.run.checkpoints import write_mean
from train.run.fine_tuning import FinishedRun
from train.run.fine_tuning import load_finished
from train.watch.attention_pictures import picture_first_pair
from train.watch.report import describe_training
from train.watch.report import write_report
from train.watch.validation_bleu import make_validation_bleu


def find_vocabulary(
    options: Options,
    training: Corpus,
    start: FinishedRun | None,
    continues: bool,
) -> bytes:
    """Returns the run's `tokenizer.model`; a new run gets it here."""
    path = options.run.run_dir / "tokenizer.model"
    if not continues:
        size = options.corpus.vocabulary_size
        write_atomically(
            path,
            start.model_proto
            if start
            else cached_vocabulary(training, size, options.cache),
        )
    return path.read_bytes()


def make_task(
    options: Options,
    preset: Preset,
    start: FinishedRun | None,
    strategy: tf.distribute.Strategy,
) -> TeacherForcing:
    """Makes the model, with the weights of `start`, and its optimizer."""
    corpus = options.corpus
    sizes = corpus.vocabulary_size, corpus.max_length
    try:
        task = fit.make_task(preset, *sizes, options.training, strategy)
    except ValueError as error:  # A layer refuses a number of the preset.
        raise UserError(str(error)) from None
    if start:
        with strategy.scope():
            task.transformer.set_weights(start.transformer.get_weights())
    return task


def run(given: Options) -> None:
    """Trains and writes the model, in a folder that is this run's alone."""
    init_from, run_dir = given.run.init_from, given.run.run_dir
    start = load_finished(init_from) if init_from else None
    options, preset = resolve(given, start)
    pairs = load_corpus(options.corpus, options.cache)
    description, continues = describe_run(options, preset, pairs, start)
    if options.corpus.dataset == "demo":
        write_demo_tests(run_dir / "demo")
    proto = find_vocabulary(options, pairs[0], start, continues)
    validation, training = (  # Mistakes in the small one show first.
        encode_corpus(text, proto, options.corpus.max_length, options.cache)
        for text in reversed(pairs)
    )
    if options.run.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = fit.make_strategy(options.run.devices)
    if cluster.is_multi_worker():
        run_folder.agree(strategy, description, proto, DIGESTED)
    settings = dataclasses.replace(
        options.training, round_steps=description["round_steps"]
    )
    task = make_task(options, preset, start, strategy)
    # From here on the folder is this run's; a mistake before claims nothing.
    run_folder.claim(run_dir, description)
    report = describe_training(
        training,
        validation,
        preset,
        options.corpus.vocabulary_size,
        options.corpus.max_length,
        settings,
        strategy.num_replicas_in_sync,
    )
    write_report(report, run_dir)
    with fit.refuse_too_little_memory():
        state = fit.fit(
            task,
            training.pairs,
            validation.pairs,
            preset.recipe.steps,
            settings,
            strategy,
            run_dir,
            options.quality,
            make_validation_bleu(options.quality, pairs[1], proto, run_dir),
            picture_first_pair(validation.pairs, proto, run_dir),
        )
    if cluster.is_chief():
        moving = settings.average_decay is not None
        write_mean(run_dir, task.transformer, state.checkpoints, moving)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error(), signals.handled_by(signals.exit_now):
        options = parse_options(argv, __doc__)
        with run_folder.locked_or_temporary(options.run.run_dir) as run_dir:
            place = dataclasses.replace(options.run, run_dir=run_dir)
            options = dataclasses.replace(options, run=place)
            with cluster.ends_with_the_others():
                run(options)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # Someone follows a log.
    with signals.exit_at_once():
        main()
