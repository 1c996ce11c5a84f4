"""Keras model for `fit`: trains a Transformer by teacher forcing."""

import contextlib

import keras
import numpy as np
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.argument_checks import check_fraction
from keras_transformer.losses import smoothed_loss
from keras_transformer.masks import padding_mask
from train.loop.fused_cross_entropy import LossSums, fused_cross_entropy

# Updates between two readings of variables, which wait for the device.
READ_EVERY = 10


class TrainingModel(keras.Model):
    """Trains a Transformer to predict each next token.

    The loss of an update is the mean over the target tokens of the whole batch,
    over all replicas, workers and micro-batches: each part divides its sum by
    `num_tokens`, which comes with the batch, and the gradients are summed.
    Logits are computed for real tokens only.

    A batch is a dict of `make_dataset`, with `K` micro-batches whose gradients
    are accumulated.

    Create the Transformer inside the scope of a strategy and this object
    outside of it; then build, compile and fit inside. (Otherwise Keras would
    build the model on the mean of the replicas' first batches.)

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
            for name in ("loss", "negative_log_likelihood", "accuracy", "gradient_norm")
        }
        self.built = True

    @property
    def metrics(self):
        return list(self.means.values())

    def get_metrics_result(self):
        results = {name: mean.result() for name, mean in self.means.items()}
        likelihood = results.pop("negative_log_likelihood")
        results["perplexity"] = tf.exp(likelihood)
        strategy = tf.distribute.get_strategy()
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if several and not tf.distribute.in_cross_replica_context():
            # Keras would reduce them over an axis (tensorflow#72388).
            results = {k: tf.reshape(v, [1]) for k, v in results.items()}
        return results

    def train_step(self, batch):
        with self.own_seeds():
            gradients = self.gradients(batch)
        norm = self.optimizer.apply(gradients, self.trainable_variables)
        if norm is not None:  # Keras's own optimizers return none.
            update_mean(self.means["gradient_norm"], norm)
        return self.get_metrics_result()

    @contextlib.contextmanager
    def own_seeds(self):
        """Context manager in which replicas drop out other features.

        The state of a generator of random numbers, a seed and a counter, is
        equal on all replicas. Inside, each adds its number to the seed.
        """
        context = tf.distribute.get_replica_context()
        several = context.num_replicas_in_sync > 1
        states = seed_states(self.transformer) if several else []
        number = tf.stack([context.replica_id_in_sync_group, 0])
        for state in states:
            state.assign_add(tf.cast(number, state.dtype))
        yield
        for state in states:
            state.assign_sub(tf.cast(number, state.dtype))

    def test_step(self, batch):
        def count(k, nothing):
            self.loss_sum(micro_batch(batch, k), training=False)
            return nothing

        for_each_micro_batch(batch, count, [])
        # All names: for a missing one Keras would use the mean over replicas.
        return self.get_metrics_result()

    def evaluate(self, *args, return_dict=False, **kwargs):
        results = super().evaluate(*args, return_dict=True, **kwargs)
        del results["gradient_norm"]  # Nothing was trained.
        return results if return_dict else [*results.values()]

    def gradients(self, batch):
        """Returns the dense gradients, summed over the micro-batches."""

        def add(k, sums):
            parts = self._micro_gradients(batch, k)
            return [a + b for a, b in zip(sums, parts, strict=True)]

        if batch["labels"].shape[0] == 1:
            return self._micro_gradients(batch, 0)
        zeros = [tf.zeros(v.shape, v.dtype) for v in self.trainable_variables]
        return for_each_micro_batch(batch, add, zeros)

    def _micro_gradients(self, batch, k):
        with tf.GradientTape() as tape:
            loss = self.loss_sum(micro_batch(batch, k), training=True)
            loss = self.optimizer.scale_loss(loss / batch["num_tokens"])
        gradients = tape.gradient(loss, self.trainable_variables)
        # Gradients of an embedding are slices with repeated indices; the sum
        # over replicas and Adam's squares need them summed.
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    def loss_sum(self, batch, training):
        """Returns the sum over the real target tokens; updates the metrics."""
        real = tf.where(padding_mask(batch["labels"]))
        labels = tf.gather_nd(batch["labels"], real)  # (N,)
        states = self._states(batch, training)
        sums = self._label_losses(tf.gather_nd(states, real), labels)  # Of (N, D).
        count = tf.cast(tf.size(labels), tf.float32)
        for name, total in sums._asdict().items():
            mean = tf.math.divide_no_nan(total, count)
            # Validation has no skipped updates.
            update_mean(self.means[name], mean, count, skips=training)
        return sums.loss

    def _states(self, batch, training):
        """Returns the states before the logits, `(B, T, D)`."""
        memory = self.transformer.encode(batch["source_ids"], training=training)
        return self.transformer.decode_states(
            batch["target_ids"],
            memory,
            padding_mask(batch["source_ids"]),
            training=training,
        )

    def _label_losses(self, states, labels) -> LossSums:
        """Computes the losses of labels `(N,)` with states `(N, D)`."""
        transformer = self.transformer
        if not transformer.overrides("compute_logits"):
            states, table = add_bias_column(states, transformer.embedding_of_logits)
            return fused_cross_entropy(states, table, labels, self.label_smoothing)
        logits = tf.cast(transformer.compute_logits(states), tf.float32)
        losses = -tf.nn.log_softmax(logits)
        nll = tf.gather(losses, labels, batch_dims=1)
        mean = tf.reduce_mean(losses, axis=1)
        smoothed = smoothed_loss(nll, mean, self.label_smoothing, logits.shape[-1])
        right = tf.cast(nll <= tf.reduce_min(losses, axis=1), tf.float32)
        return LossSums(*map(tf.reduce_sum, (smoothed, nll, right)))


def transformer_of(model: keras.Model) -> Transformer:
    """Returns the Transformer that a model trains, maybe the model itself."""
    return getattr(model, "transformer", model)


def updates_of(model: keras.Model) -> int:
    """Returns the updates made so far, skipped ones included."""
    # An optimizer of Keras counts them all.
    counter = getattr(model.optimizer, "updates", model.optimizer.iterations)
    return int(counter.numpy())


def seed_states(transformer: Transformer) -> list:
    """Returns the variables of dropout's random numbers."""
    return [v for v in transformer.variables if "seed_generator" in v.path]


def add_bias_column(states, embedding):
    """Returns `h` and `E`, or `[h, 1]` and `[E, b]` if there is a logits bias."""
    table = tf.convert_to_tensor(embedding.embeddings)
    if embedding.bias is None:
        return states, table
    bias = tf.convert_to_tensor(embedding.bias)
    return (
        tf.concat([states, tf.ones_like(states[:, :1])], axis=1),
        tf.concat([table, bias[:, None]], axis=1),
    )


def to_float(value) -> float:
    """Returns a metric as float; several workers return an array of one."""
    return float(np.ravel(value)[0])


def for_each_micro_batch(batch, step, state):
    """Applies `step(k, state)` to each micro-batch and returns the state.

    The number of micro-batches is a dimension of the batch, which may be
    unknown until the batch is there.
    """
    if batch["labels"].shape[0] == 1:
        return step(0, state)
    count = tf.shape(batch["labels"])[0]
    return tf.while_loop(
        lambda k, _: k < count,
        lambda k, state: (k + 1, step(k, state)),
        (0, state),
        # The activations of several micro-batches at once need more memory.
        parallel_iterations=1,
    )[1]


def micro_batch(batch, k):
    """Returns micro-batch `k` of a batch."""
    return {
        name: value[k] if name != "num_tokens" else value
        for name, value in batch.items()
    }


def update_mean(mean, value, count=1.0, skips=True):
    """Adds a mean of `count` values, unless it `skips` what is not finite."""
    counts = tf.math.is_finite(value) | (not skips)
    mean.update_state(tf.where(counts, value, 0.0), tf.where(counts, count, 0.0))
