"""Runs the largest batch once before training, to reveal a lack of memory."""

import numpy as np
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.special_ids import EOS_ID, PADDING_ID
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.bucketing import count_micro_batches
from train.loop.training_model import TrainingModel, seed_states


class FilledBatches:
    """A batch plan whose batches have no padding and a loss of NaN."""

    def __init__(self, plan: BatchPlan):
        self._plan = plan

    def __getattr__(self, name: str):
        return getattr(self._plan, name)

    def batch(self, *which: int) -> tuple[np.ndarray, ...]:
        *ids, _ = self._plan.batch(*which)
        full = (np.where(x == PADDING_ID, EOS_ID, x) for x in ids)
        return *full, np.float32(np.nan)


def check_memory(
    training_model: TrainingModel,
    plan: BatchPlan,
    strategy: tf.distribute.Strategy,
    start: int,
    limit: int | None = None,
) -> None:
    """Runs an update on the largest batch of `start`'s pass, without any effect.

    So a lack of memory shows before the first update. The loss is NaN, hence
    weights and moments stay as they are; counters are restored.
    """
    transformer, optimizer = training_model.transformer, training_model.optimizer
    counts = [v for v in optimizer.variables if v.shape == ()]
    counts += seed_states(transformer)
    values = [np.array(count) for count in counts]
    num_replicas = strategy.num_replicas_in_sync
    j = find_largest_batch(transformer, plan, start, num_replicas, limit)
    data = make_dataset(FilledBatches(plan), strategy, j, None, limit)
    training_model.fit(data, steps_per_epoch=1, shuffle=False, verbose=0)
    for count, value in zip(counts, values, strict=True):
        count.assign(value)
    training_model.reset_metrics()


def find_largest_batch(
    transformer: Transformer,
    plan: BatchPlan,
    j: int,
    num_replicas: int,
    limit: int | None,
) -> int:
    """Returns the number of a batch in `j`'s pass that needs most memory."""
    needed = []
    for rows, *lengths in plan.shapes:
        count = count_micro_batches((rows, *lengths), num_replicas, limit)
        # The rows of a micro-batch on a device.
        rows = -(-rows // (num_replicas * count))
        needed.append(rows * estimate_memory(transformer, *lengths))
    there = np.flatnonzero(plan.num_batches).tolist()
    # Of equals, the one with the longest sentences.
    return plan.find_shape(j, max(reversed(there), key=needed.__getitem__))


def estimate_memory(transformer: Transformer, source: int, target: int) -> int:
    """Estimates the bytes of a pair of lengths `source` and `target`.

    The backward pass reads about `12 D + 2 d_ff` numbers for each position of
    an encoder layer, `20 D + 2 d_ff` of a decoder layer, and three for each
    attention weight, in the compute dtype. The loss holds as many logits with
    any batch; those of a user's own output layer are four float32 arrays
    `(T, V)`: logits, `-log p`, and their gradients.
    """
    sizes = transformer.architecture
    wide, scores = 2 * sizes.intermediate_dim, 3 * sizes.num_heads
    encoder = source * (12 * sizes.hidden_dim + wide + scores * source)
    decoder = target * (20 * sizes.hidden_dim + wide + scores * (source + target))
    numbers = sizes.num_layers * encoder + sizes.num_decoder_layers * decoder
    logits = 0
    if transformer.overrides("compute_logits"):
        logits = 4 * 4 * target * transformer.vocabulary_size
    return logits + tf.as_dtype(transformer.compute_dtype).size * numbers
