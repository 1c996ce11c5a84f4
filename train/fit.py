"""Training with `model.fit` (Sections 5.2 to 5.4)."""

import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence

import keras
import tensorflow as tf

from command_line.errors import UserError, first_line
from keras_transformer import Preset, Transformer
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.bucketing import ROW_MULTIPLE
from train.data.encoded_pairs import EncodedPairs
from train.loop import multi_worker, signal_handling
from train.loop.distributed_optimizer import DistributedAdam, distribute_updates
from train.loop.memory_check import check_memory
from train.loop.training_model import TrainingModel, give_replicas_own_seeds
from train.loop.update_options import PRECISIONS, UpdateOptions
from train.monitoring.attention_pictures import AttentionPictures
from train.monitoring.callbacks_across_fits import CallbacksAcrossFits
from train.monitoring.cost_estimates import find_largest_batch
from train.monitoring.progress import Progress
from train.monitoring.validation_bleu import ValidationBleu
from train.run.best_checkpoints import BestCheckpoints, ValidationOptions
from train.run.training_state import TrainingState

MakeOptimizer = Callable[
    [keras.optimizers.schedules.LearningRateSchedule], keras.optimizers.Optimizer
]


def make_strategy(devices: list[str] | None) -> tf.distribute.Strategy:
    """Chooses the distribution strategy.

    With `TF_CONFIG` set, it uses the visible devices of all workers.

    Args:
        devices: Names such as `"GPU:0"`, or `None` for every visible GPU, or
            the CPU where there is none.

    Raises:
        UserError: If a device does not exist or is named twice, or if there
            are names although `TF_CONFIG` is set.
    """
    if multi_worker.is_multi_worker():
        if devices:
            raise UserError(
                "CUDA_VISIBLE_DEVICES chooses the GPUs of a machine where "
                "TF_CONFIG is set, and --devices must be left out. "
                f"Received: --devices {' '.join(devices)}"
            )
        return multi_worker.make_strategy()
    visible = [
        device.name.removeprefix("/device:")
        for device in tf.config.list_logical_devices()
    ]
    gpus = [name for name in visible if name.startswith("GPU")]
    chosen = devices or gpus
    unknown = [name for name in chosen if name not in visible]
    if unknown:
        raise UserError(
            f"--devices must be among {', '.join(visible)}. "
            f"Received: {', '.join(unknown)}"
        )
    if not chosen:
        return tf.distribute.get_strategy()
    if len(set(chosen)) < len(chosen):
        raise UserError(
            f"--devices must be different ones. Received: {', '.join(chosen)}"
        )
    if len(chosen) == 1:
        return tf.distribute.OneDeviceStrategy(chosen[0])
    # On CPUs of one machine, in-process collectives of two groups can collide.
    on_cpu = any(name.startswith("CPU") for name in chosen)
    return tf.distribute.MirroredStrategy(
        chosen, tf.distribute.ReductionToOneDevice() if on_cpu else None
    )


def make_training_model(
    preset: Preset,
    vocabulary_size: int,
    max_length: int,
    update_options: UpdateOptions,
    strategy: tf.distribute.Strategy,
    source_vocabulary_size: int | None = None,
    make_optimizer: MakeOptimizer | None = None,
) -> TrainingModel:
    """Makes the model and its optimizer, ready for `fit`.

    Args:
        preset: Sizes of the model, and its recipe.
        vocabulary_size: Int, subwords of the tokenizer.
        max_length: Int, longest side of a pair.
        update_options: Options of training.
        strategy: The distribution strategy.
        source_vocabulary_size: Int, subwords of sources if they have their own
            embedding matrix, or `None`.
        make_optimizer: Function of a learning rate schedule that makes any
            Keras optimizer, such as `keras.optimizers.AdamW` (default: the
            paper's Adam).
    """
    keras.utils.set_random_seed(update_options.seed)
    with strategy.scope():
        transformer = Transformer.from_preset(
            preset,
            vocabulary_size,
            sequence_length=max_length,
            source_vocabulary_size=source_vocabulary_size,
            dtype=PRECISIONS[update_options.precision],
            name="transformer",
        )
        give_replicas_own_seeds(transformer)
    training_model = TrainingModel(
        transformer,
        preset.recipe.label_smoothing,
        update_options.make_guided_alignment(),
    )
    with strategy.scope():
        training_model.build()
        schedule = update_options.make_schedule(preset)
        update_arguments = {
            "clip_norm": update_options.clip_norm,
            "scale_loss": update_options.precision == "float16",
        }
        if make_optimizer is None:
            optimizer = DistributedAdam(
                schedule, weight_decay=update_options.weight_decay, **update_arguments
            )
        else:
            optimizer = distribute_updates(make_optimizer(schedule), **update_arguments)
        training_model.compile(optimizer, jit_compile=False)
        optimizer.build(training_model.trainable_variables)
    return training_model


@dataclasses.dataclass(frozen=True)
class FitData:
    """Encoded sentence pairs of a run."""

    training: EncodedPairs
    validation: EncodedPairs
    row_multiple: int = ROW_MULTIPLE  # Divides the sentences of a batch.


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """Options of a run: its length, its updates and its validation."""

    steps: int  # The update after which training ends.
    update: UpdateOptions
    validation: ValidationOptions = dataclasses.field(default_factory=ValidationOptions)
    best_since: int = 0  # Scores up to this update are ignored.


@dataclasses.dataclass(frozen=True)
class FitContext:
    """Folder, devices and monitors of a run."""

    run_dir: pathlib.Path
    strategy: tf.distribute.Strategy
    bleu: ValidationBleu | None = None
    pictures: AttentionPictures | None = None


def fit(
    training_model: TrainingModel,
    data: FitData,
    options: FitOptions,
    context: FitContext,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> BestCheckpoints:
    """Trains until update `options.steps`, from the run's last checkpoint.

    Args:
        training_model: The compiled model.
        data: Training and validation pairs.
        options: Options of the run.
        context: Folder, devices and monitors.
        callbacks: Further callbacks of `model.fit`. Values that they add to
            the logs of an epoch are in `history.csv`, too.

    Returns:
        The `BestCheckpoints` of the run; its `state` is the `TrainingState`.

    Raises:
        SystemExit: If a signal ended the run; its state is saved.
        UserError: If the training diverged.
    """
    update, strategy = options.update, context.strategy
    plan, validation = (
        BatchPlan(pairs, update.batch_tokens, update.seed, data.row_multiple)
        for pairs in (data.training, data.validation)
    )
    limit = update.max_tokens_per_replica
    steps_per_epoch = update.steps_per_epoch
    validation_steps = validation.batches_per_pass
    validation_data = functools.partial(
        make_dataset, validation, strategy, 0, validation_steps, limit
    )
    replicas = strategy.num_replicas_in_sync
    with signal_handling.collected() as signals, strategy.scope():
        user_callbacks = CallbacksAcrossFits(callbacks)
        best, callbacks = make_callbacks(
            training_model, options, context, signals, user_callbacks
        )
        state = best.state
        training_model.stop_training = False
        start = state.updates
        at_end = start % steps_per_epoch == 0 or start == options.steps
        if state.within_epoch and at_end:
            end_epoch(
                training_model,
                state,
                callbacks,
                steps_per_epoch,
                validation_data(),
                validation_steps,
            )
        if start < options.steps:
            largest = find_largest_batch(
                training_model.transformer,
                plan,
                start,
                replicas,
                limit,
                update.precision,
            )
            check_memory(training_model, plan, strategy, largest, limit)
        for first, epoch, epochs, updates in plan_fit_calls(
            start, options.steps, steps_per_epoch
        ):
            # A callback of the caller may also end the run.
            if best.out_of_patience or training_model.stop_training:
                break
            training_model.fit(
                make_dataset(plan, strategy, first, None, limit),
                initial_epoch=epoch,
                epochs=epochs,
                steps_per_epoch=updates,
                validation_data=validation_data(),
                validation_steps=validation_steps,
                shuffle=False,
                # Without a terminal, one line for each epoch.
                verbose="auto" if sys.stdout.isatty() else 2,
                callbacks=callbacks,
            )
        user_callbacks.end()
    return best


def make_callbacks(
    training_model: TrainingModel,
    options: FitOptions,
    context: FitContext,
    signals: list[int],
    user_callbacks: keras.callbacks.Callback,
) -> tuple[BestCheckpoints, list[keras.callbacks.Callback]]:
    """Makes the callbacks of `model.fit`, and loads the latest checkpoint.

    Args:
        training_model: The compiled model.
        options: Options of the run.
        context: Folder, devices and monitors.
        signals: List to which a signal handler adds.
        user_callbacks: Callback that calls those of the caller.

    Returns:
        The best checkpoints, and the list of all callbacks.
    """
    update, run_dir, bleu = options.update, context.run_dir, context.bleu
    state = TrainingState(
        training_model,
        run_dir,
        update.average if multi_worker.is_chief() else 1,
        signals,
    )
    resume(state, context.strategy)
    best = make_best_checkpoints(state, options, run_dir)
    if bleu:
        bleu.before_batch = state.exit_if_interrupted
    monitors = [monitor for monitor in (bleu, context.pictures) if monitor]
    # `state` writes the logs of the callbacks before it to `history.csv`.
    board = keras.callbacks.TensorBoard(run_dir / "logs", write_graph=False)
    progress = Progress(options.steps)
    return best, [progress, *monitors, user_callbacks, board, state, best]


def resume(state: TrainingState, strategy: tf.distribute.Strategy) -> None:
    """Loads the latest checkpoint, if there is one."""
    updates = state.restore()
    if multi_worker.is_multi_worker():
        updates = state.share(strategy)
    if updates:
        print(f"continuing after update {updates:,}")


def make_best_checkpoints(
    state: TrainingState, options: FitOptions, run_dir: pathlib.Path
) -> BestCheckpoints:
    """Makes the callback; on several workers only the chief keeps files."""
    update, validation = options.update, options.validation
    best = BestCheckpoints(
        state,
        run_dir,
        validation.best_by or "loss",
        (multi_worker.is_chief() and validation.keep_best) or 0,
        validation.patience,
        update.average,
        options.best_since,
    )
    if multi_worker.is_chief():
        state.checkpoints_to_keep = best.checkpoints_to_keep
    best.update()
    return best


@contextlib.contextmanager
def explain_out_of_memory() -> Iterator[None]:
    """Turns out-of-memory errors into one line with advice."""
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        if "No space left on device" in str(error):
            raise
        raise UserError(
            "the device has too little memory; take a lower "
            "--max-tokens-per-replica, which leaves the updates as they are. "
            f"Received: {first_line(error)}"
        ) from None


def end_epoch(
    training_model: TrainingModel,
    state: TrainingState,
    callbacks: list[keras.callbacks.Callback],
    steps_per_epoch: int,
    validation_data: tf.data.Dataset,
    validation_steps: int,
) -> None:
    """Runs the end of an epoch that was interrupted after its last update."""
    state.restore_metrics()
    logs = dict(training_model.get_metrics_result())
    results = training_model.evaluate(
        validation_data,
        steps=validation_steps,
        verbose=0,
        return_dict=True,
        callbacks=[state],
    )
    logs.update({f"val_{name}": value for name, value in results.items()})
    listed = keras.callbacks.CallbackList(
        callbacks, add_history=False, add_progbar=False, model=training_model
    )
    listed.on_train_begin()
    listed.on_epoch_end((state.updates - 1) // steps_per_epoch, logs)
    listed.on_train_end()


def plan_fit_calls(start: int, steps: int, steps_per_epoch: int) -> list[tuple]:
    """Divides the updates that are left into calls of `fit`.

    The rest of an interrupted epoch comes first, then complete epochs, then
    the remaining updates.

    Returns:
        List of tuples: first update, its epoch, epoch to stop before, updates
        of an epoch.
    """
    calls = []
    while start < steps:
        epoch, within = divmod(start, steps_per_epoch)
        whole = (steps - start) // steps_per_epoch
        if within or not whole:
            end, epochs = min(steps, (epoch + 1) * steps_per_epoch), epoch + 1
            calls.append((start, epoch, epochs, end - start))
        else:
            end, epochs = start + whole * steps_per_epoch, epoch + whole
            calls.append((start, epoch, epochs, steps_per_epoch))
        start = end
    return calls
