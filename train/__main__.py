"""Trains a Transformer on sentence pairs.

The pairs are two text files, one sentence a line, a translation set of
TensorFlow Datasets, or the embedded corpus (--dataset demo). The same command
continues a run that was interrupted, and with more --steps one that has ended.
"""

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable

import tensorflow as tf

from command_line.errors import UserError, exit_on_user_error, first_line
from command_line.options import replace_values
from keras_transformer import Preset
from keras_transformer.schedules import DECAYS
from train import fit
from train.corpus_size_recipe import apply_recipe, fill_in_recipe, uses_corpus_size
from train.data.bucketing import choose_row_multiple
from train.data.corpus import Corpus
from train.data.derived_corpora import in_both_directions
from train.data.encoded_pairs import EncodedPairs
from train.data_preparation import PreparedData, prepare
from train.loop import multi_worker, signal_handling
from train.loop.training_model import TrainingModel
from train.loop.update_options import UpdateOptions
from train.monitoring.attention_pictures import picture_first_pair
from train.monitoring.corpus_and_cost_report import (
    describe_training,
    warn_of_dropped_pairs,
    warn_of_idle_gpus,
    write_report,
)
from train.monitoring.final_scores import (
    make_scored_model,
    score_model,
    score_translations,
    write_scores,
)
from train.monitoring.validation_bleu import ValidationBleu, make_validation_bleu
from train.options import (
    BOTH_DIRECTIONS,
    CORPUS_SIZE_RECIPE,
    DIGESTED,
    NOT_COMPARED,
    Options,
    RunOptions,
    parse_options,
)
from train.resolve_options import describe_run, load_corpus, resolve, resolve_tokenizer
from train.run import run_description, run_folder
from train.run.best_checkpoints import BestCheckpoints, ValidationOptions
from train.run.checkpoint_averaging import choose_weights, make_float32_copy, save_model
from train.run.fine_tuning import FinishedRun, load_finished
from train.run.run_description import RunDescription
from train.run.vocabulary_extension import extend_vocabulary


def load_initial_run(run: RunOptions) -> FinishedRun | None:
    """Reads the run of --init-from, and extends its vocabulary if asked."""
    pieces = run.extend_vocabulary
    if run.init_from is None:
        if pieces is not None:
            raise UserError(
                "--extend-vocabulary needs --init-from. "
                f"Received: --extend-vocabulary {pieces} alone"
            )
        return None
    start = load_finished(run.init_from)
    return start if pieces is None else extend_vocabulary(start, pieces)


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
    except tf.errors.ResourceExhaustedError as error:
        raise UserError(
            "the device has too little memory for the model; take a smaller "
            f"one. Received: {first_line(error)}"
        ) from None
    if start:
        with strategy.scope():
            training_model.transformer.set_weights(start.transformer.get_weights())
    return training_model


def run(given: Options) -> None:
    """Trains the model in the run folder, which is locked."""
    # The other workers wait while the chief encodes, so join them first.
    strategy = fit.make_strategy(given.run.devices)
    start = load_initial_run(given.run)
    options, preset = resolve(fill_in_recipe(given), start)
    if uses_corpus_size(given):
        corpus = load_corpus(options.corpus, options.cache)[0]
        given = replace_values(given, recipe=CORPUS_SIZE_RECIPE)
        options, preset = resolve(apply_recipe(given, len(corpus)), start)
    if options.run.both_directions:
        start = train_both_directions(options, preset, strategy)
        options, preset = resolve(options, start)
    train_run(options, preset, start, strategy)
    if multi_worker.is_chief():
        print(
            f"Next:\n  python -m export --run-dir {options.run.run_dir} "
            "--export-dir EXPORT_DIR"
        )


def train_both_directions(
    options: Options, preset: Preset, strategy: tf.distribute.Strategy
) -> FinishedRun:
    """Trains in both directions, unless that has ended; returns the run.

    Args:
        options: Those of the run that follows.
        preset: Its preset; half of its updates are in both directions.
        strategy: The distribution strategy.
    """
    run_dir = options.run.run_dir / BOTH_DIRECTIONS
    has_ended = (run_dir / "model.keras").exists()
    numbers = {"steps": max(1, preset.recipe.steps // 2)}
    if has_ended:  # The run that follows may have another length since.
        earlier = RunDescription.load_run(run_dir, "--run-dir")
        numbers["steps"] = earlier.preset.recipe.steps
    falls = options.training.schedule in DECAYS
    if falls and numbers["steps"] < preset.recipe.warmup_steps:
        numbers["warmup_steps"] = numbers["steps"]
    first = dataclasses.replace(
        replace_values(options, run_dir=run_dir, cache_dir=options.cache, **numbers),
        validation=ValidationOptions(validate_bleu=0),
    )
    first, preset = resolve(first, None)
    if has_ended:
        check_unchanged(first, preset)
    else:
        print(f"in both directions, {numbers['steps']:,} updates, in {run_dir}")
        run_dir.mkdir(parents=True, exist_ok=True)
        train_run(first, preset, None, strategy, in_both_directions)
    return load_finished(run_dir)


def check_unchanged(options: Options, preset: Preset) -> None:
    """Refuses other options or text than those of a run in both directions."""
    training, validation = load_corpus(options.corpus, options.cache)
    description = run_description.describe(
        options.arguments(),
        preset,
        in_both_directions(training),
        validation,
        options.vocabulary.digests(),
    )
    description.find_earlier(options.run.run_dir, NOT_COMPARED)


def train_run(
    options: Options,
    preset: Preset,
    start: FinishedRun | None,
    strategy: tf.distribute.Strategy,
    change_training_corpus: Callable[[Corpus], Corpus] = lambda corpus: corpus,
) -> None:
    """Trains one model, in its run folder.

    Args:
        options: The options, resolved.
        preset: The preset.
        start: The run to start from, if any.
        strategy: The distribution strategy.
        change_training_corpus: Function of the training corpus that returns
            the one to learn from.
    """
    if multi_worker.is_multi_worker():
        asked = options.arguments()
        compared = {n: x for n, x in asked.items() if n not in DIGESTED}
        multi_worker.check_same_arguments(strategy, compared)
    if multi_worker.is_chief():
        training, validation = load_corpus(options.corpus, options.cache)
        pairs = change_training_corpus(training), validation
        options = resolve_tokenizer(options, pairs)
        description, resumes = describe_run(options, preset, pairs, start)
    if options.run.deterministic:
        tf.config.experimental.enable_op_determinism()
    # Check everything before a large corpus is encoded.
    training_model = make_training_model(options, preset, start, strategy)
    prepared = None
    if multi_worker.is_chief():
        prepared = prepare(options, pairs, start, description, resumes)
    if multi_worker.is_multi_worker():
        prepared = multi_worker.send_from_chief(
            strategy, prepared, options.run.run_dir / "received"
        )
    train(options, preset, prepared, training_model, strategy)


def train(
    options: Options,
    preset: Preset,
    prepared: PreparedData,
    training_model: TrainingModel,
    strategy: tf.distribute.Strategy,
) -> None:
    """Fits the model, and writes the final one."""
    run_dir, description = options.run.run_dir, prepared.description
    training, validation = prepared.training, prepared.validation
    update_options = dataclasses.replace(
        options.training, steps_per_epoch=description.steps_per_epoch
    )
    update_options.check_limit([training.pairs, validation.pairs])
    if description.row_multiple is None:
        description.row_multiple = choose_row_multiple(strategy.num_replicas_in_sync)
    # An error before this line leaves the folder unclaimed.
    description.claim(run_dir)
    report_training(options, preset, prepared, update_options, training_model, strategy)
    # The chief chose the tokenizer that the target language needs.
    arguments, text = description.arguments, prepared.validation_text
    validation_options = dataclasses.replace(
        options.validation, bleu_tokenize=arguments["bleu_tokenize"]
    )
    make_bleu = functools.partial(
        make_validation_bleu,
        validation_options,
        text,
        prepared.protos,
        run_dir,
        description.decoding,
    )
    with fit.explain_out_of_memory():
        best = fit.fit(
            training_model,
            fit.FitData(training.pairs, validation.pairs, description.row_multiple),
            fit.FitOptions(
                preset.recipe.steps,
                update_options,
                validation_options,
                description.best_since,
            ),
            fit.FitContext(
                run_dir,
                strategy,
                make_bleu() if validation_options.validate_bleu else None,
                picture_first_pair(validation.pairs, prepared.protos, run_dir),
            ),
        )
        if multi_worker.is_chief():
            bleu = make_bleu() if text else None
            finish(
                best,
                preset.recipe.warmup_steps,
                training_model,
                validation.pairs,
                update_options,
                strategy.num_replicas_in_sync,
                run_dir,
                bleu,
            )


def report_training(
    options: Options,
    preset: Preset,
    prepared: PreparedData,
    update_options: UpdateOptions,
    training_model: TrainingModel,
    strategy: tf.distribute.Strategy,
) -> None:
    """Prints and writes the report on corpus, batches and costs."""
    report = describe_training(
        prepared.training,
        prepared.validation,
        preset,
        options.corpus.vocabulary_size,
        options.corpus.max_length,
        update_options,
        strategy.num_replicas_in_sync,
        prepared.description.row_multiple,
        training_model.transformer.source_vocabulary_size,
    )
    write_report(report, options.run.run_dir)
    warn_of_dropped_pairs(report)
    warn_of_idle_gpus(report, strategy)


def finish(
    best: BestCheckpoints,
    warmup_steps: int,
    training_model: TrainingModel,
    validation_pairs: EncodedPairs,
    update_options: UpdateOptions,
    num_replicas: int,
    run_dir: pathlib.Path,
    bleu: ValidationBleu | None,
) -> None:
    """Writes the final model and its scores."""
    paths, step = best.choose_final(warmup_steps)
    model = make_float32_copy(training_model.transformer)
    scored = make_scored_model(model, training_model.label_smoothing)
    score = functools.partial(
        score_model, scored, validation_pairs, update_options, num_replicas
    )
    final = choose_weights(model, paths, score, step)
    path = run_dir / "model.keras"
    save_model(path, model, final.paths)
    print(f"{path} is {final.description}")
    scores = {"validation": final.scores}
    if bleu:
        translated = score_translations(scored, bleu)
        scores["validation"].update(translated.pop("validation"))
        scores.update(translated)
    write_scores(path, final.paths, scores)


def main(argv: list[str] | None = None) -> None:
    with (
        signal_handling.handled_by(signal_handling.exit_now),
        multi_worker.join_before_exit(),
        exit_on_user_error(),
    ):
        options = parse_options(argv, __doc__)
        with run_folder.locked_or_temporary(options.run.run_dir) as run_dir:
            options = replace_values(options, run_dir=run_dir)
            with multi_worker.exit_on_worker_error():
                run(options)


if __name__ == "__main__":
    # Log files get each line at once.
    sys.stdout.reconfigure(line_buffering=True)
    with signal_handling.skip_thread_shutdown():
        main()
