"""Several machines that train one model (`MultiWorkerMirroredStrategy`).

Every machine runs the same command, with `TF_CONFIG` set as TensorFlow wants
it. The chief alone reads and writes the run folder; it hands its state to the
others when the training starts.
"""

import contextlib
import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import first_line

LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


def is_multi_worker() -> bool:
    return bool(config().get("cluster"))


def is_chief() -> bool:
    """Tells whether this process is the one that writes."""
    task = config().get("task", {})
    kind, index = task.get("type", "chief"), int(task.get("index", 0))
    has_chief = "chief" in config().get("cluster", {})
    return kind == "chief" or (not has_chief and index == 0)


def config() -> dict:
    """Returns `TF_CONFIG`, empty where it is not set.

    Raises:
        UserError: If it is no JSON object.
    """
    text = os.environ.get("TF_CONFIG", "{}")
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"TF_CONFIG must be a JSON object. Received: {text}")
    return found


def make_strategy() -> tf.distribute.MultiWorkerMirroredStrategy:
    """Joins the other workers; waits until all are there.

    Raises:
        UserError: If `TF_CONFIG` names no such cluster.
    """
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"TF_CONFIG must name this task in its cluster: {error}. "
            f"Received: {os.environ['TF_CONFIG']}"
        ) from None


def broadcast(
    strategy: tf.distribute.Strategy, arrays: list[np.ndarray]
) -> list[np.ndarray]:
    """Returns the chief's arrays, on every worker.

    Args:
        strategy: The strategy of all workers.
        arrays: Numeric arrays, of the same shapes and dtypes on each worker.
    """

    @tf.function
    def share(arrays):
        context = tf.distribute.get_replica_context()
        first = tf.equal(context.replica_id_in_sync_group, 0)
        # One by one: together they would have to be of one dtype.
        return [
            context.all_reduce("SUM", tf.where(first, a, tf.zeros_like(a)))
            for a in arrays
        ]

    # As arguments: constants would make a graph of their size.
    shared = strategy.run(share, args=([tf.constant(a) for a in arrays],))
    return [
        strategy.experimental_local_results(value)[0].numpy()
        for value in shared
    ]


def any_worker(strategy: tf.distribute.Strategy, flag: bool) -> bool:
    """Tells whether `flag` is true on some worker; all must ask at once."""
    if not is_multi_worker():
        return flag
    return bool(make_sum(strategy)(tf.constant(float(flag))) > 0)


@functools.cache
def make_sum(
    strategy: tf.distribute.Strategy,
) -> tf.types.experimental.Callable:
    @tf.function
    def add_up(value):
        return strategy.reduce("SUM", strategy.run(lambda: value), axis=None)

    return add_up


def check_equal(strategy: tf.distribute.Strategy, what: dict) -> None:
    """Checks that every worker was given what the chief was.

    Args:
        strategy: The strategy of all workers.
        what: Descriptions by name, such as the digest of the corpus.

    Raises:
        UserError: On every worker, if some worker's differ.
    """
    mine = np.array(
        [
            int(hashlib.sha256(repr(value).encode()).hexdigest()[:12], 16)
            for value in what.values()
        ]
    )
    (chiefs,) = broadcast(strategy, [mine])
    differs = (mine != chiefs).astype(np.int64)

    def count():
        return tf.distribute.get_replica_context().all_reduce("SUM", differs)

    counts = strategy.experimental_local_results(
        strategy.run(tf.function(count))
    )[0]
    names = [
        name for name, n in zip(what, counts.numpy(), strict=True) if n > 0
    ]
    if names:
        raise UserError(
            "all workers must have the same arguments and the same text as "
            f"the chief. These differ: {', '.join(names)}"
        )


@contextlib.contextmanager
def ends_with_the_others() -> Iterator[None]:
    """Exits with a line if another worker is lost meanwhile."""
    try:
        yield
    except LOST as error:
        if not is_multi_worker():
            raise
        print(
            f"error: another worker is gone ({first_line(error)}). Start the "
            "command again on all of them: it goes on from the last checkpoint",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
