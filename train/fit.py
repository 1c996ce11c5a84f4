"""Training with `model.fit` (Sections 5.2 to 5.4)."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from command_line.errors import UserError, first_line
from keras_transformer import Preset, Transformer
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.loop import multi_worker
from train.loop.distributed_optimizer import DistributedAdam
from train.loop.training_model import TrainingModel
from train.loop.training_options import PRECISIONS, TrainingOptions
from train.monitoring.progress import ProgressLine, ProgressLogger, TensorBoardCurves
from train.run.early_stopping import EarlyStopping, ValidationOptions
from train.run.training_state import TrainingState


def make_strategy(devices: list[str] | None) -> tf.distribute.Strategy:
    """Chooses the distribution strategy.

    With `TF_CONFIG` set, it uses the visible devices of all workers.
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
    training_options: TrainingOptions,
    strategy: tf.distribute.Strategy,
    source_vocabulary_size: int | None = None,
) -> TrainingModel:
    """Makes the model and its optimizer, ready for `fit`.

    Args:
        preset: Sizes of the model, and its recipe.
        vocabulary_size: Int, subwords of the tokenizer.
        max_length: Int, longest side of a pair.
        training_options: Options of training.
        strategy: The distribution strategy.
        source_vocabulary_size: Int, subwords of sources if they have their own
            embedding matrix, or `None`.
    """
    keras.utils.set_random_seed(training_options.seed)
    with strategy.scope():
        transformer = Transformer.from_preset(
            preset,
            vocabulary_size,
            sequence_length=max_length,
            source_vocabulary_size=source_vocabulary_size,
            dtype=PRECISIONS[training_options.precision],
            name="transformer",
        )
    training_model = TrainingModel(transformer, preset.recipe.label_smoothing)
    with strategy.scope():
        training_model.build()
        optimizer = DistributedAdam(
            training_options.make_schedule(preset),
            training_options.clip_norm,
            scale_loss=training_options.precision == "float16",
        )
        training_model.compile(optimizer, jit_compile=False)
        optimizer.build(training_model.trainable_variables)
    return training_model


def fit(
    training_model: TrainingModel,
    plan: BatchPlan,
    validation_plan: BatchPlan,
    steps: int,
    training_options: TrainingOptions,
    run_dir: pathlib.Path,
    strategy: tf.distribute.Strategy,
    validation_options: ValidationOptions | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> EarlyStopping:
    """Trains until update `steps`, from the run's last checkpoint.

    Args:
        training_model: The compiled model.
        plan: The training batches.
        validation_plan: The validation batches.
        steps: Int, the update after which training ends.
        training_options: Options of an update.
        run_dir: Folder of the run.
        strategy: The distribution strategy.
        validation_options: Options of early stopping, or `None` for the
            defaults.
        callbacks: Further callbacks of `model.fit`. Values that they add to
            the logs of an epoch are in `history.csv`, too.

    Returns:
        The `EarlyStopping` of the run; its `state` is the `TrainingState`.

    Raises:
        UserError: If the training diverged.
    """
    limit = training_options.max_tokens_per_replica
    steps_per_epoch = training_options.steps_per_epoch
    validation_steps = validation_plan.batches_per_pass
    with strategy.scope():
        # The other workers' run folder is a temporary one, which nobody reads.
        keep = training_options.average if multi_worker.is_chief() else 1
        state = TrainingState(training_model, run_dir, keep)
        start = state.restore(strategy)
        best = EarlyStopping(state, validation_options)
        if start >= steps or best.out_of_patience:
            return best
        first_epoch = -(-start // steps_per_epoch)
        training_model.fit(
            make_dataset(plan, strategy, start, None, limit),
            initial_epoch=first_epoch,
            # The last epoch may be a short one, which `ProgressLogger` ends.
            epochs=first_epoch - (start - steps) // steps_per_epoch,
            steps_per_epoch=steps_per_epoch,
            validation_data=make_dataset(
                validation_plan, strategy, 0, validation_steps, limit
            ),
            validation_steps=validation_steps,
            shuffle=False,
            verbose=0,
            callbacks=[
                ProgressLogger(steps),
                *callbacks,
                TensorBoardCurves(run_dir / "logs"),
                ProgressLine(steps),
                # It writes the logs of the callbacks before it to `history.csv`.
                state,
                best,
            ],
        )
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
            "--max-tokens-per-replica, which leaves the updates as they are, or a "
            f"smaller model. Received: {first_line(error)}"
        ) from None
