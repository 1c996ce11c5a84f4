"""Runs a batch once before training, to reveal a lack of memory."""

import numpy as np
import tensorflow as tf

from keras_transformer.special_ids import EOS_ID, PADDING_ID
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
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
    j: int,
    limit: int | None = None,
) -> None:
    """Runs an update on the shape of batch `j`, without any effect.

    So a lack of memory shows before the first update. The loss is NaN, hence
    weights and moments stay as they are; counters are restored.
    """
    optimizer = training_model.optimizer
    counts = [v for v in optimizer.variables if v.shape == ()]
    counts += seed_states(training_model.transformer)
    values = [np.array(count) for count in counts]
    data = make_dataset(FilledBatches(plan), strategy, j, None, limit)
    training_model.fit(data, steps_per_epoch=1, shuffle=False, verbose=0)
    for count, value in zip(counts, values, strict=True):
        count.assign(value)
    training_model.reset_metrics()
