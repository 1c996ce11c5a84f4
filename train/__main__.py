"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, one file of pairs (TMX, TSV,
CSV, JSON lines, Parquet, or a zip file of OPUS), a set of TensorFlow Datasets or
Hugging Face, or the embedded corpus (--dataset demo). Without validation files,
some pairs are held out. The same command continues a run that was interrupted, and
with more --steps one that has ended.
"""

import dataclasses
import functools
import signal
import sys

import tensorflow as tf

from command_line.errors import UserError, exit_on_user_error
from command_line.options import replace_values
from keras_transformer import Preset
from keras_transformer.schedules import DECAYS
from train import fit
from train.corpus_size_recipes import describe_recipe
from train.data.batch_plan import BatchPlan
from train.data.bucketing import choose_row_multiple
from train.data.corpus import Corpus
from train.data.derived_corpora import find_tags, in_both_directions
from train.data_preparation import (
    PreparedData,
    describe_run,
    fit_vocabulary_size,
    group_for_bleu,
    prepare,
)
from train.final_model import write_final_model
from train.loop import multi_worker, signal_handling
from train.loop.training_model import TrainingModel
from train.monitoring.corpus_report import (
    describe_training,
    refuse_known_validation,
    write_report,
)
from train.monitoring.validation_bleu import ValidationBleu
from train.options import (
    BOTH_DIRECTIONS,
    CORPUS_SIZE_RECIPE,
    DIGESTED,
    Options,
    parse_options,
)
from train.resolve_options import resolve
from train.run import run_folder
from train.run.early_stopping import ValidationOptions
from train.run.fine_tuning import FinishedRun, load_finished
from train.run.run_description import read_arguments
from train.training_corpus import load_corpus


def run(given: Options) -> None:
    """Trains the model in the run folder, which is locked."""
    # The other workers wait while the chief encodes, so join them first.
    strategy = fit.make_strategy(given.run.devices)
    if multi_worker.is_multi_worker():  # TensorFlow has replaced the handlers.
        for number in signal_handling.SIGNALS:
            signal.signal(number, signal_handling.exit_now)
    run_dir, init_from = given.run.run_dir, given.run.init_from
    start = load_finished(init_from) if init_from else None
    earlier = read_arguments(run_dir) or read_arguments(run_dir / BOTH_DIRECTIONS)
    # Options are checked before the text is read.
    options, preset = resolve(given, start, earlier)
    pairs = None
    if multi_worker.is_chief():
        pairs = load_corpus(options)
        if tags := find_tags(pairs[0]):
            print(f"sources begin with a tag of {', '.join(tags.target_tags)}")
            if given.run.both_directions:
                raise UserError(
                    "--both-directions is for one target language; name the sources "
                    "of both directions in --mixture. Received: several"
                )
            given, options = (
                replace_values(x, both_directions=False) for x in (given, options)
            )
    if options.run.recipe == CORPUS_SIZE_RECIPE:
        size = len(pairs[0])
        options, preset = resolve(given, start, earlier, size)
        if text := describe_recipe(given, options, size):
            print(text)
    if given.corpus.vocabulary_size is None and not (
        start or multi_worker.is_multi_worker()
    ):
        options = fit_vocabulary_size(options, pairs[0])
    if options.run.both_directions:
        start = train_both_directions(options, preset, pairs, strategy)
    train(options, preset, pairs, start, strategy)
    if multi_worker.is_chief():
        print(f"Next:\n  python -m export --run-dir {run_dir} --export-dir EXPORT_DIR")


def train_both_directions(
    options: Options,
    preset: Preset,
    pairs: tuple[Corpus, Corpus],
    strategy: tf.distribute.Strategy,
) -> FinishedRun:
    """Trains in both directions, unless that has ended; returns the run."""
    run_dir = options.run.run_dir / BOTH_DIRECTIONS
    if (run_dir / "model.keras").exists():
        return load_finished(run_dir)
    numbers = {"steps": max(1, preset.recipe.steps // 2)}
    falls = options.training.schedule in DECAYS
    if falls and numbers["steps"] < preset.recipe.warmup_steps:
        numbers["warmup_steps"] = numbers["steps"]
    first = dataclasses.replace(
        replace_values(options, run_dir=run_dir, cache_dir=options.cache, **numbers),
        validation=ValidationOptions(validate_bleu=0),
    )
    print(f"in both directions, {numbers['steps']:,} updates, in {run_dir}")
    run_dir.mkdir(parents=True, exist_ok=True)
    pairs = in_both_directions(pairs[0]), pairs[1]
    train(first, preset.replace(**numbers), pairs, None, strategy)
    return load_finished(run_dir)


def train(
    options: Options,
    preset: Preset,
    pairs: tuple[Corpus, Corpus] | None,
    start: FinishedRun | None,
    strategy: tf.distribute.Strategy,
) -> None:
    """Trains one model, in its run folder, and writes it."""
    if multi_worker.is_multi_worker():
        asked = options.arguments()
        compared = {n: x for n, x in asked.items() if n not in DIGESTED}
        multi_worker.check_same_arguments(strategy, compared)
    if multi_worker.is_chief():
        group_for_bleu(options, pairs)  # Refuses a tokenizer that is missing.
        description, resumes = describe_run(options, preset, pairs, start)
    # Check everything before a large corpus is encoded.
    with fit.explain_out_of_memory():
        training_model = make_training_model(options, preset, start, strategy)
    prepared = None
    if multi_worker.is_chief():
        prepared = prepare(options, pairs, start, description, resumes)
    if multi_worker.is_multi_worker():
        prepared = multi_worker.send_from_chief(
            strategy, prepared, options.run.run_dir / "received"
        )
    fit_and_finish(options, preset, prepared, training_model, strategy)


def make_training_model(
    options: Options,
    preset: Preset,
    start: FinishedRun | None,
    strategy: tf.distribute.Strategy,
) -> TrainingModel:
    """Makes the model, with the weights of `start`, and its optimizer."""
    corpus = options.corpus
    try:
        training_model = fit.make_training_model(
            preset,
            corpus.vocabulary_size,
            corpus.max_length,
            options.training,
            strategy,
            start.transformer.source_vocabulary_size if start else None,
        )
    except ValueError as error:  # A layer refuses a number of the preset.
        raise UserError(str(error)) from None
    if start:
        with strategy.scope():
            training_model.transformer.set_weights(start.transformer.get_weights())
    return training_model


def fit_and_finish(
    options: Options,
    preset: Preset,
    prepared: PreparedData,
    training_model: TrainingModel,
    strategy: tf.distribute.Strategy,
) -> None:
    """Reports on corpus and costs, fits the model, and writes the final one."""
    run_dir, description = options.run.run_dir, prepared.description
    training, validation = prepared.training, prepared.validation
    training_options = dataclasses.replace(
        options.training, steps_per_epoch=description.steps_per_epoch
    )
    training_options.check_limit([training.pairs, validation.pairs])
    num_replicas = strategy.num_replicas_in_sync
    if description.row_multiple is None:
        description.row_multiple = choose_row_multiple(num_replicas)
    plan, validation_plan = (
        BatchPlan(
            encoded.pairs,
            training_options.batch_tokens,
            training_options.seed,
            description.row_multiple,
        )
        for encoded in (training, validation)
    )
    parameters = training_model.transformer.count_params()
    report = describe_training(training, validation, plan, parameters, preset.recipe)
    if not options.corpus.allow_validation_in_training:
        refuse_known_validation(report)
    # An error before this line leaves the folder unclaimed.
    description.claim(run_dir)
    write_report(report, run_dir)
    make_bleu = functools.partial(
        ValidationBleu,
        prepared.validation_text,
        prepared.protos,
        options.validation,
        prepared.validation_groups,
        description.decoding,
        bool(description.languages),
    )
    monitors = [make_bleu()] if options.validation.validate_bleu else []
    with fit.explain_out_of_memory():
        best = fit.fit(
            training_model,
            plan,
            validation_plan,
            preset.recipe.steps,
            training_options,
            run_dir,
            strategy,
            options.validation,
            monitors,
        )
        if multi_worker.is_chief():
            write_final_model(
                best,
                preset.recipe.warmup_steps,
                training_model,
                validation_plan,
                training_options,
                num_replicas,
                run_dir,
                make_bleu() if prepared.validation_text else None,
            )


def main(argv: list[str] | None = None) -> None:
    with (
        signal_handling.handled_by(signal_handling.exit_now),
        multi_worker.join_before_exit(),
        exit_on_user_error(),
    ):
        given = parse_options(argv, __doc__)
        with (
            run_folder.locked_or_temporary(given.run.run_dir) as run_dir,
            multi_worker.exit_on_worker_error(),
        ):
            run(replace_values(given, run_dir=run_dir))


if __name__ == "__main__":
    # Log files get each line at once.
    sys.stdout.reconfigure(line_buffering=True)
    with signal_handling.skip_thread_shutdown():
        main()
