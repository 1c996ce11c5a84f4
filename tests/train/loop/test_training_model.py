"""Tests of `train.loop.training_model`; `tests/train/test_fit.py` has more."""

import functools

import numpy as np
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.helpers.small_runs import make_training_pairs, small_task
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset, make_replica_batch

NAMES = ("source_ids", "target_ids", "labels", "num_tokens")


@functools.cache
def gradient_function():
    """Returns the function of an update, traced once for any micro-batches."""
    task = small_task()
    ids = tf.TensorSpec([None, None, None], tf.int32)
    spec = dict.fromkeys(NAMES[:3], ids)
    spec["num_tokens"] = tf.TensorSpec([], tf.float32)
    return tf.function(task.gradients, input_signature=[spec])


def gradients(plan, j, num_replicas, limit):
    compute = gradient_function()
    parts = []
    for replica in range(num_replicas):
        batch = make_replica_batch(plan, j, replica, num_replicas, limit)
        parts.append(compute(dict(zip(NAMES, batch, strict=True))))
    return [sum(part).numpy() for part in zip(*parts, strict=True)]


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 12),
    st.sampled_from([1, 2, 3, 5]),
    st.integers(13, 130),
    st.sampled_from([8, 24]),
)
def test_gradients_are_those_of_the_one_big_batch(j, num_replicas, limit, row_multiple):
    plan = BatchPlan(make_training_pairs(), 120, 0, row_multiple)

    whole = gradients(plan, j, 1, None)
    parts = gradients(plan, j, num_replicas, limit)

    for a, b in zip(parts, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_evaluates_as_a_dict_or_as_a_list():
    task = small_task()
    plan = BatchPlan(make_training_pairs(), 120, 0)
    data = make_dataset(plan, tf.distribute.get_strategy(), 0, 1)

    found = task.evaluate(data, verbose=0)

    results = task.evaluate(data, verbose=0, return_dict=True)
    assert results.keys() == {"loss", "accuracy", "perplexity"}
    assert found == [*results.values()]


def test_one_micro_batch_runs_at_a_time():
    """Several at once would need the memory of several."""
    graph = gradient_function().get_concrete_function().graph

    loops = [
        operation.get_attr("parallel_iterations")
        for operation in graph.get_operations()
        if operation.type.endswith("While")
    ]

    assert loops == [1]
