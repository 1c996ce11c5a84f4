"""Training with `model.fit` (Sections 5.2 to 5.4)."""

import dataclasses
import math
import pathlib
import sys

import keras
import tensorflow as tf

from command_line.errors import UserError
from keras_transformer import Preset
from keras_transformer import Transformer
from keras_transformer import TransformerSchedule
from train.data.batches import BatchPlan
from train.data.batches import make_dataset
from train.data.vocabulary import EncodedPairs
from train.loop import cluster
from train.loop import signals
from train.loop.optimizer import DistributedAdam
from train.loop.task import TeacherForcing
from train.loop.task import let_replicas_differ
from train.run.best import BestCheckpoints
from train.run.run_state import RunState
from train.watch.attention_pictures import AttentionPictures
from train.watch.progress import Progress
from train.watch.validation_bleu import ValidationBleu

PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


@dataclasses.dataclass(frozen=True)
class FitSettings:
    """How a model is trained, beside what its preset says.

    Attributes:
        batch_tokens: Int, positions of a side in an update, padding included,
            over all devices (25,000 in the paper).
        round_steps: Int, updates between two validations and checkpoints.
        learning_rate_scale: Float that multiplies the paper's learning rate.
        precision: `"float32"`, `"bfloat16"` or `"float16"`, of the matrix
            products; weights, softmax, normalization and loss are float32.
        max_tokens_per_replica: Int, positions of a side that a device takes
            at once; an update of more is made of several micro-batches.
            `None` for no limit.
        clip_norm: Float, norm that the gradient is shrunk to where it is
            longer, or `None` as in the paper.
        average_decay: Float in (0, 1), decay of an exponential moving average
            of the weights, or `None` for none.
        seed: Int, seed of weights, dropout and order.
        keep: Int, how many of the latest checkpoints stay.
        keep_best: Int, how many of the best checkpoints stay beside them.
        best_by: `"loss"` or `"bleu"`, what makes a checkpoint good.
        patience: Int, rounds without a better one after which training stops,
            or `None` for never.
    """

    batch_tokens: int
    round_steps: int
    learning_rate_scale: float = 1.0
    precision: str = "float32"
    max_tokens_per_replica: int | None = None
    clip_norm: float | None = None
    average_decay: float | None = None
    seed: int = 0
    keep: int = 5
    keep_best: int = 0
    best_by: str = "loss"
    patience: int | None = None

    def micro_batches(self, plan: BatchPlan, num_replicas: int) -> int:
        """Returns the number of micro-batches that make an update."""
        if self.max_tokens_per_replica is None:
            return 1
        return max(
            math.ceil(
                rows
                / (
                    num_replicas
                    * max(1, self.max_tokens_per_replica // max(lengths))
                )
            )
            for rows, *lengths in plan.shapes
        )


def make_strategy(devices: list[str] | None) -> tf.distribute.Strategy:
    """Chooses where to train.

    With `TF_CONFIG` set, that is on the visible devices of all its workers.

    Args:
        devices: Names such as `"GPU:0"`, or `None` for every visible GPU, or
            the CPU where there is none.

    Raises:
        UserError: If there is no such device, or if it is not for this
            option to choose.
    """
    if cluster.is_multi_worker():
        if devices:
            raise UserError(
                "CUDA_VISIBLE_DEVICES chooses the GPUs of a machine where "
                "TF_CONFIG is set, and --devices must be left out. "
                f"Received: --devices {' '.join(devices)}"
            )
        return cluster.make_strategy()
    there = [
        device.name.removeprefix("/device:")
        for device in tf.config.list_logical_devices()
    ]
    gpus = [name for name in there if name.startswith("GPU")]
    chosen = devices or gpus
    unknown = [name for name in chosen if name not in there]
    if unknown:
        raise UserError(
            f"--devices must be among {', '.join(there)}. "
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
    # On one machine's CPUs, in-process collectives can meet another group's.
    on_cpu = any(name.startswith("CPU") for name in chosen)
    return tf.distribute.MirroredStrategy(
        chosen,
        tf.distribute.ReductionToOneDevice() if on_cpu else None,
    )


def make_task(
    preset: Preset,
    vocabulary_size: int,
    max_length: int,
    settings: FitSettings,
    strategy: tf.distribute.Strategy,
) -> TeacherForcing:
    """Makes the model and its optimizer, ready for `fit`."""
    keras.utils.set_random_seed(settings.seed)
    with strategy.scope():
        transformer = Transformer.from_preset(
            preset,
            vocabulary_size,
            sequence_length=max_length,
            dtype=PRECISIONS[settings.precision],
            name="transformer",
        )
        let_replicas_differ(transformer)
    task = TeacherForcing(transformer, preset.recipe.label_smoothing)
    with strategy.scope():
        task.build()
        optimizer = DistributedAdam(
            TransformerSchedule(
                preset.architecture.hidden_dim,
                preset.recipe.warmup_steps,
                settings.learning_rate_scale,
            ),
            clip_norm=settings.clip_norm,
            average_decay=settings.average_decay,
            scale_loss=settings.precision == "float16",
        )
        task.compile(optimizer, jit_compile=False)
        optimizer.build(task.trainable_variables)
    return task


def fit(
    task: TeacherForcing,
    train_pairs: EncodedPairs,
    validation_pairs: EncodedPairs,
    steps: int,
    settings: FitSettings,
    strategy: tf.distribute.Strategy,
    run_dir: pathlib.Path,
    bleu: ValidationBleu | None = None,
    pictures: AttentionPictures | None = None,
) -> RunState:
    """Trains until update `steps`, from the last checkpoint of the run.

    With `bleu`, its rounds also log the BLEU of the validation set; with
    `pictures`, every round shows where the model looks.

    Returns:
        The state of the run, which knows its checkpoints.

    Raises:
        SystemExit: If a signal ended the run; what was reached is saved.
        UserError: If the training diverged.
    """
    plan = BatchPlan(train_pairs, settings.batch_tokens, settings.seed)
    micro_batches = settings.micro_batches(plan, strategy.num_replicas_in_sync)
    validation = BatchPlan(
        validation_pairs, settings.batch_tokens // micro_batches, settings.seed
    )

    def validation_data():
        return make_dataset(
            validation, strategy, last=validation.steps_per_epoch
        )

    with signals.collected() as received, strategy.scope():
        state = RunState(task, run_dir, steps, settings.keep, received)
        start = state.restore()
        if cluster.is_multi_worker():
            start = state.share(strategy)
        if start:
            print(f"continuing after update {start:,}")
        best = BestCheckpoints(
            state,
            run_dir,
            settings.best_by,
            settings.keep_best,
            settings.patience,
        )
        best.update()
        callbacks = [
            # Before `state`, which makes of the logs a row of the history.
            Progress(steps),
            *[callback for callback in (bleu, pictures) if callback],
            keras.callbacks.TensorBoard(run_dir / "logs", write_graph=False),
            state,
            best,
        ]
        if bleu:
            bleu.before_batch = state.exit_if_interrupted
        if state.in_round and (
            start % settings.round_steps == 0 or start == steps
        ):
            end_round(
                task,
                state,
                callbacks,
                settings.round_steps,
                x=validation_data(),
                steps=validation.steps_per_epoch,
            )
        for first, epoch, epochs, length in spans(
            start, steps, settings.round_steps
        ):
            if best.out_of_patience:
                break
            task.fit(
                make_dataset(plan, strategy, first, None, micro_batches),
                initial_epoch=epoch,
                epochs=epochs,
                steps_per_epoch=length,
                validation_data=validation_data(),
                validation_steps=validation.steps_per_epoch,
                shuffle=False,
                # A line a round where nobody watches a bar.
                verbose="auto" if sys.stdout.isatty() else 2,
                callbacks=callbacks,
            )
    return state


def end_round(
    task: TeacherForcing,
    state: RunState,
    callbacks: list[keras.callbacks.Callback],
    round_steps: int,
    **validation,
) -> None:
    """Does what `fit` had not done after the last update of a round."""
    state.restore_means()
    logs = dict(task.get_metrics_result())
    results = task.evaluate(
        **validation, verbose=0, return_dict=True, callbacks=[state]
    )
    logs.update({f"val_{name}": value for name, value in results.items()})
    listed = keras.callbacks.CallbackList(
        callbacks, add_history=False, add_progbar=False, model=task
    )
    listed.on_train_begin()
    listed.on_epoch_end((state.updates - 1) // round_steps, logs)
    listed.on_train_end()


def spans(start: int, steps: int, round_steps: int) -> list[tuple]:
    """Divides the updates that are left into calls of `fit`.

    A round that was interrupted is ended first, whole rounds follow, and what
    is left comes last.

    Returns:
        List of tuples: first update, round it is in, round to stop before,
        updates a round.
    """
    spans = []
    while start < steps:
        epoch, within = divmod(start, round_steps)
        whole = (steps - start) // round_steps
        if within or not whole:
            end, epochs = min(steps, (epoch + 1) * round_steps), epoch + 1
            spans.append((start, epoch, epochs, end - start))
        else:
            end, epochs = start + whole * round_steps, epoch + whole
            spans.append((start, epoch, epochs, round_steps))
        start = end
    return spans
