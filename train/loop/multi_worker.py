"""Training on several machines (`MultiWorkerMirroredStrategy`).

Every machine runs the same command, with `TF_CONFIG` set as TensorFlow
specifies. Only the chief reads the text and uses the run folder; it sends the
results to the other workers, which wait for it.
"""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import pickle
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from command_line.errors import UserError, first_line

LOST_WORKER_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
# An internal error is local, unless its message names another worker.
OF_ANOTHER = re.compile("remote target|peer|heartbeat|unhealthy|NCCL")
CHUNK = 1 << 26  # Bytes of a chunk.


def is_multi_worker() -> bool:
    return bool(read_tf_config().get("cluster"))


def is_chief() -> bool:
    """Returns whether this process is the chief, which writes files."""
    task = read_tf_config().get("task", {})
    kind, index = task.get("type", "chief"), int(task.get("index", 0))
    has_chief = "chief" in read_tf_config().get("cluster", {})
    return kind == "chief" or (not has_chief and index == 0)


def read_tf_config() -> dict:
    """Returns the content of `TF_CONFIG`, empty if it is not set."""
    text = os.environ.get("TF_CONFIG", "{}")
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"TF_CONFIG must be a JSON object. Received: {text}")
    return found


@functools.cache
def make_strategy() -> tf.distribute.MultiWorkerMirroredStrategy:
    """Connects to the other workers; waits until all are ready."""
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
    """Returns the chief's arrays, on every worker."""

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
    return [strategy.experimental_local_results(value)[0].numpy() for value in shared]


def send_from_chief(
    strategy: tf.distribute.Strategy, value: Any, folder: pathlib.Path
) -> Any:
    """Returns the chief's value, on every worker."""
    parts = []
    if is_chief():
        stream = pickle.dumps(value, protocol=5, buffer_callback=parts.append)
        parts = [memoryview(stream), *(part.raw() for part in parts)]
    (count,) = broadcast(strategy, [np.array(len(parts))])
    sizes = np.zeros(int(count), np.int64)
    sizes[: len(parts)] = [len(part) for part in parts]
    (sizes,) = broadcast(strategy, [sizes])
    if is_chief():
        for part in parts:
            for _ in broadcast_chunks(strategy, part, len(part)):
                pass
        return value
    folder.mkdir(parents=True, exist_ok=True)
    received = []
    for number, size in enumerate(sizes.tolist()):
        path = folder / f"part-{number}"
        with path.open("wb") as file:
            file.writelines(broadcast_chunks(strategy, None, size))
        received.append(np.memmap(path, np.uint8, "r") if size else b"")
    return pickle.loads(received[0], buffers=received[1:])


def broadcast_chunks(
    strategy: tf.distribute.Strategy, part: memoryview | None, size: int
) -> Iterator[bytes]:
    """Yields the chief's bytes in chunks."""
    for start in range(0, size, CHUNK):
        length = min(CHUNK, size - start)
        # Integers that can be summed.
        words = np.zeros(-(-length // 8), np.int64)
        if part is not None:
            words.view(np.uint8)[:length] = part[start : start + length]
        (words,) = broadcast(strategy, [words])
        yield words.tobytes()[:length]


def decided_by_chief(strategy: tf.distribute.Strategy, flag: bool) -> bool:
    """Returns the chief's `flag`, on every worker; all must call it."""
    if not is_multi_worker():
        return flag
    (decided,) = broadcast(strategy, [np.array(flag, np.int64)])
    return bool(decided)


def check_same_arguments(strategy: tf.distribute.Strategy, arguments: dict) -> None:
    """Checks that every worker has the arguments of the chief."""
    mine = np.array(
        [
            int(hashlib.sha256(repr(value).encode()).hexdigest()[:12], 16)
            for value in arguments.values()
        ]
    )
    (chiefs,) = broadcast(strategy, [mine])
    differs = (mine != chiefs).astype(np.int64)

    def count():
        return tf.distribute.get_replica_context().all_reduce("SUM", differs)

    counts = strategy.experimental_local_results(strategy.run(tf.function(count)))[0]
    names = [name for name, n in zip(arguments, counts.numpy(), strict=True) if n > 0]
    if names:
        raise UserError(
            "all workers must have the same arguments as the chief. These "
            f"differ: {', '.join(names)}"
        )


@contextlib.contextmanager
def exit_on_worker_error() -> Iterator[None]:
    """Exits with one line if another worker is lost."""
    try:
        yield
    except (*LOST_WORKER_ERRORS, tf.errors.InternalError) as error:
        internal = isinstance(error, tf.errors.InternalError)
        if not is_multi_worker() or (internal and not OF_ANOTHER.search(str(error))):
            raise
        print(
            f"error: another worker is gone ({first_line(error)}). Start the "
            "command again on all of them: it resumes from the last checkpoint",
            file=sys.stderr,
        )
        raise SystemExit(1) from None


@contextlib.contextmanager
def join_before_exit() -> Iterator[None]:
    """Connects to the other workers before an error ends this one.

    They notice the end of a connected worker, but would wait an hour for one
    that never connects.
    """
    try:
        yield
    except SystemExit as exit_:
        if exit_.code == 2:
            with contextlib.suppress(UserError):
                if is_multi_worker():
                    make_strategy()
        raise
