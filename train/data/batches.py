"""Batches as a dataset of `tf.data`, for each replica its own sentences."""

import numpy as np
import tensorflow as tf

from train.data.batch_plan import BatchPlan
from train.data.bucketing import count_micro_batches


def make_replica_batch(
    plan: BatchPlan, j: int, replica: int, num_replicas: int, limit: int | None = None
) -> list[np.ndarray]:
    """Returns a replica's sentences of batch `j`, as `K` micro-batches.

    Returns:
        Source ids `(K, n, S)`, target ids and labels `(K, n, T)`, and the number
        of target tokens in the whole batch.
    """
    count = count_micro_batches(plan.shape(j), num_replicas, limit)
    parts = [
        plan.batch(j, replica + k * num_replicas, num_replicas * count)
        for k in range(count)
    ]
    *ids, tokens = zip(*parts, strict=True)
    return [*(np.stack(part) for part in ids), tokens[0]]


def make_dataset(
    plan: BatchPlan,
    strategy: tf.distribute.Strategy,
    first: int = 0,
    last: int | None = None,
    limit: int | None = None,
):
    """Makes the dataset that `fit` reads: batches `first` to `last - 1`.

    Args:
        plan: The plan of the batches.
        strategy: The strategy; each of its replicas gets its own sentences.
        first: Int, number of the first batch.
        last: Int, number after the last batch, or `None` for no end.
        limit: Int, maximum positions of a side in a micro-batch;
            `count_micro_batches` gives their number `K`. Without a limit, `K`
            is statically 1.

    Returns:
        Dataset of dicts: int32 `"source_ids"` of shape `(K, n, S)`,
        `"target_ids"` and `"labels"` of shape `(K, n, T)`, and float32
        `"num_tokens"`, a scalar: target tokens in the batch of all replicas.
    """
    count = 1 if limit is None else None
    ids = (tf.int32, (count, None, None))
    contents = {"source_ids": ids, "target_ids": ids, "labels": ids}
    contents["num_tokens"] = tf.float32, ()
    dtypes, shapes = zip(*contents.values(), strict=True)

    def for_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        local_replicas = replicas // context.num_input_pipelines
        offset = context.input_pipeline_id * local_replicas

        def read(i):
            j, local = divmod(int(i), local_replicas)
            return make_replica_batch(plan, j, offset + local, replicas, limit)

        def load(i):
            values = tf.numpy_function(read, [i], dtypes, stateful=False)
            for value, shape in zip(values, shapes, strict=True):
                value.set_shape(shape)
            return dict(zip(contents, values, strict=True))

        end = tf.int64.max if last is None else last * local_replicas
        numbers = tf.data.Dataset.range(first * local_replicas, end)
        dataset = numbers.map(load, num_parallel_calls=2, deterministic=True)
        # Turn autotuning off: nothing needs it, and its sleeping thread delays
        # the end of an iterator by up to a minute.
        options = tf.data.Options()
        options.autotune.enabled = False
        return dataset.prefetch(4).with_options(options)

    if strategy.num_replicas_in_sync == 1:
        return for_pipeline(tf.distribute.InputContext())
    return strategy.distribute_datasets_from_function(for_pipeline)
