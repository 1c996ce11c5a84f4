"""Training with `model.fit` (Sections 5.2 to 5.4)."""

import dataclasses
import math
import pathlib
import sys

import keras
import tensorflow as tf

from keras_transformer import Preset
from keras_transformer import Transformer
from keras_transformer import TransformerSchedule
from keras_transformer.checks import check_fraction
from keras_transformer.errors import UserError
from keras_transformer.masks import padding_mask
from train.batches import ROW_MULTIPLE
from train.batches import BatchPlan
from train.batches import make_dataset
from train.best import BestCheckpoints
from train.callbacks import Progress
from train.callbacks import RunState
from train.validation import ValidationBleu
from train.vocabulary import EncodedPairs

PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


@dataclasses.dataclass(frozen=True)
class FitSettings:
    """How a model is trained, beside what its preset says.

    Attributes:
        batch_tokens: Int, positions of a side in an update, padding included,
            over all devices (25,000 in the paper).
        round_steps: Int, updates between two validations and checkpoints.
        learning_rate_scale: Float that multiplies the paper's learning rate.
        precision: `"float32"` or `"bfloat16"`, of the matrix products.
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
    seed: int = 0
    keep: int = 5
    keep_best: int = 0
    best_by: str = "loss"
    patience: int | None = None


class TeacherForcing(keras.Model):
    """A Transformer as `fit` sees it: it predicts each next token.

    The loss of an update is the sum of the losses of its target tokens over
    their number, in the batch of all replicas together: each replica divides
    its own sum by `num_tokens`, which comes with the batch, and the optimizer
    adds up the gradients. Logits are computed for real tokens only.

    Make the Transformer inside the scope of a strategy and this object outside
    of it; then build, compile and fit inside. (Keras would otherwise build
    itself on the mean of the replicas' first batches.)

    Args:
        transformer: The model to train.
        label_smoothing: Float in [0, 1), `ε_ls` in the paper (0.1).
    """

    def __init__(self, transformer: Transformer, label_smoothing: float):
        super().__init__(name="teacher_forcing")
        self.transformer = transformer
        check_fraction("label_smoothing", label_smoothing)
        self.label_smoothing = label_smoothing

    def build(self, input_shape=None):
        self.transformer.build()
        self.means = {
            name: keras.metrics.Mean(name)
            for name in ("loss", "negative_log_likelihood", "accuracy")
        }
        self.built = True

    @property
    def metrics(self):
        return list(self.means.values())

    def get_metrics_result(self):
        results = {name: mean.result() for name, mean in self.means.items()}
        likelihood = results.pop("negative_log_likelihood")
        return {**results, "perplexity": tf.exp(likelihood)}

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            losses = self.token_losses(batch, training=True)
            loss = tf.reduce_sum(losses) / batch["num_tokens"]
            loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        # Rows of an embedding come as slices; all-reduce wants them dense.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        self.optimizer.apply(gradients, variables)
        return self.get_metrics_result()

    def test_step(self, batch):
        self.token_losses(batch, training=False)
        return self.get_metrics_result()

    def token_losses(self, batch, training):
        """Returns the loss of each real target token, and counts it."""
        memory = self.transformer.encode(batch["source_ids"], training=training)
        states = self.transformer.decode_states(
            batch["target_ids"],
            memory,
            padding_mask(batch["source_ids"]),
            training=training,
        )
        real = tf.where(padding_mask(batch["labels"]))
        labels = tf.gather_nd(batch["labels"], real)  # (N,)
        states = tf.gather_nd(states, real)  # (N, D)
        logits = self.transformer.embedding(states, reverse=True)
        logits = tf.cast(logits, tf.float32)  # (N, V)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        losses = nll + self._smoothing(states, labels)
        best = tf.argmax(logits, axis=1, output_type=labels.dtype)
        self.means["loss"].update_state(losses)
        self.means["negative_log_likelihood"].update_state(nll)
        self.means["accuracy"].update_state(tf.cast(best == labels, tf.float32))
        return losses

    def _smoothing(self, states, labels):
        """Returns what `SmoothedCrossentropy` adds to the unsmoothed loss.

        With logits `z = E h`, that is `ε V / (V - 1) * (z_label - mean(z))`.
        Both terms come from `h` and `E`: four passes over `(N, V)` less.
        """
        table = tf.convert_to_tensor(self.transformer.embedding.embeddings)
        states = tf.cast(states, tf.float32)
        label = tf.reduce_sum(states * tf.gather(table, labels), axis=1)
        mean = tf.linalg.matvec(states, tf.reduce_mean(table, axis=0))
        size = self.transformer.vocabulary_size
        return self.label_smoothing * size / (size - 1) * (label - mean)


def make_strategy(devices: list[str] | None) -> tf.distribute.Strategy:
    """Chooses where to train.

    Args:
        devices: Names such as `"GPU:0"`, or `None` for every visible GPU, or
            the CPU where there is none.

    Raises:
        UserError: If there is no such device.
    """
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
    task = TeacherForcing(transformer, preset.label_smoothing)
    with strategy.scope():
        task.build()
        task.compile(
            keras.optimizers.Adam(  # Section 5.3
                TransformerSchedule(
                    preset.hidden_dim,
                    preset.warmup_steps,
                    settings.learning_rate_scale,
                ),
                beta_1=0.9,
                beta_2=0.98,
                epsilon=1e-9,
            ),
            jit_compile=False,
        )
        task.optimizer.build(task.trainable_variables)
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
) -> RunState:
    """Trains until update `steps`, from the last checkpoint of the run.

    With `bleu`, its rounds also log the BLEU of the validation set.

    Returns:
        The state of the run, which knows its checkpoints.
    """
    multiple = math.lcm(ROW_MULTIPLE, strategy.num_replicas_in_sync)
    tokens = settings.batch_tokens
    plan = BatchPlan(train_pairs, tokens, settings.seed, multiple)
    validation = BatchPlan(validation_pairs, tokens, settings.seed, multiple)
    shapes = ", ".join(f"{rows}x{length}" for rows, length in plan.shapes)
    print(
        f"batches: {plan.steps_per_epoch:,} an epoch, {plan.fill:.0%} of their "
        f"positions are tokens, shapes {shapes}"
    )
    with strategy.scope():
        state = RunState(task, run_dir, steps, settings.keep)
        start = state.restore()
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
        if start >= steps or best.out_of_patience:
            return state
        task.fit(
            make_dataset(plan, strategy, first=start),
            initial_epoch=start // settings.round_steps,
            epochs=math.ceil(steps / settings.round_steps),
            steps_per_epoch=settings.round_steps,
            validation_data=make_dataset(
                validation, strategy, last=validation.steps_per_epoch
            ),
            validation_steps=validation.steps_per_epoch,
            shuffle=False,
            # A line a round where nobody watches a bar.
            verbose="auto" if sys.stdout.isatty() else 2,
            callbacks=[
                Progress(),
                *([bleu] if bleu else []),
                state,
                best,
                keras.callbacks.TensorBoard(
                    run_dir / "logs", write_graph=False
                ),
            ],
        )
    return state
