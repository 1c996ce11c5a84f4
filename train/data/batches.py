"""Batches of sentences of about equal length, counted in tokens (Section 5.1).

Batch `j` is a pure function of the seed and `j`, whatever the number of
devices: training can start at any batch, at once.
"""

import dataclasses
import threading

import numpy as np
import tensorflow as tf

from keras_transformer.masks import BEGIN_ID
from keras_transformer.masks import PADDING_ID
from train.data.vocabulary import EncodedPairs
from train.data.vocabulary import Ids

MAX_SHAPES = 16
ROW_MULTIPLE = 8


class BatchPlan:
    """Says which sentence pairs make batch `j`.

    Each pair goes into the smallest of at most 16 shapes that holds it. A shape
    is a fixed number of rows, and a length for each side: where targets are
    longer than sources on the whole, so they are in each shape. Pairs that fill
    no batch of their shape move on to the next larger one: every pair comes
    once an epoch, and only the last batch of the largest is filled up with
    padding.

    Args:
        pairs: The encoded corpus.
        batch_tokens: Positive int, positions of the longer side in a batch,
            padding included: a batch of sentences padded to `length` has
            `batch_tokens // length` rows, rounded down to a multiple of 8, and
            8 at least: 2, 4 and 8 devices get as many each.
        seed: Int, seed of the order.

    Attributes:
        shapes: Tuple of `(rows, source length, target length)`, shortest
            first.
        num_batches: Tuple of ints, batches of each shape in an epoch.
        steps_per_epoch: Int, their sum.
        tokens: Int, real tokens of both sides in an epoch.
        target_tokens: Int, those of the targets.
        fill: Float in (0, 1], real tokens over positions, of both sides.
    """

    def __init__(self, pairs: EncodedPairs, batch_tokens: int, seed: int):
        self._pairs = pairs
        self._seed = seed
        sides = [pairs.sources.lengths, pairs.targets.lengths]
        sizes = size_of(*sides)
        boundaries = choose_boundaries(sizes, MAX_SHAPES)
        bucket_of = np.searchsorted(boundaries, np.arange(boundaries[-1] + 1))
        self._bucket = bucket_of.astype(np.uint8)[sizes]
        self.shapes = tuple(
            (rows_of(batch_tokens, max(lengths)), *lengths)
            for lengths in zip(
                *(longest_of(side, sizes, boundaries) for side in sides),
                strict=True,
            )
        )
        self.num_batches = self._count_batches()
        self.steps_per_epoch = sum(self.num_batches)
        self.target_tokens = self._count_tokens(pairs.targets)
        tokens = self._count_tokens(pairs.sources) + self.target_tokens
        positions = sum(
            batches * rows * (source + target)
            for batches, (rows, source, target) in zip(
                self.num_batches, self.shapes, strict=True
            )
        )
        self.tokens = tokens
        self.fill = tokens / positions
        self._epochs = {}
        self._lock = threading.Lock()

    def batch(
        self, j: int, part: int = 0, num_parts: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns batch `j`, or the part of it that falls to a replica.

        Args:
            j: Int, number of the batch, from 0.
            part: Int, takes the rows `part`, `part + num_parts`, …
            num_parts: Int, parts that the batch falls into, all of as many
                rows: rows of padding fill them up.

        Returns:
            Int32 arrays of source ids, `(n, S)`, and of target ids (which begin
            with the begin symbol) and labels (which end with the end symbol),
            `(n, T)`, and a float32 scalar, the number of target tokens in the
            whole batch.
        """
        epoch, place = divmod(j, self.steps_per_epoch)
        (rows, *lengths), indices = self._order(epoch)[place]
        tokens = self._pairs.targets.lengths[indices].sum()
        mine = indices[part::num_parts]
        sources = self._pairs.sources.pad(mine, lengths[0])
        labels = self._pairs.targets.pad(mine, lengths[1])
        missing = -(-rows // num_parts) - len(mine)
        sources, labels = (
            np.pad(x, ((0, missing), (0, 0))) for x in (sources, labels)
        )
        return sources, shift_right(labels), labels, np.float32(tokens)

    def _count_batches(self) -> tuple[int, ...]:
        counts = np.zeros(len(self.shapes), np.int64)
        for bucket in range(len(self.shapes)):
            counts[bucket] = self._repeated(self._bucket == bucket).sum()
        batches = []
        left = 0
        for count, (rows, *_) in zip(counts.tolist(), self.shapes, strict=True):
            whole, left = divmod(count + left, rows)
            batches.append(whole)
        return (*batches[:-1], batches[-1] + bool(left))

    def _repeated(self, chosen: np.ndarray) -> np.ndarray:
        """Returns how often each of the chosen pairs comes."""
        repeats = self._pairs.repeats
        return chosen if repeats is None else repeats[chosen]

    def _count_tokens(self, ids: Ids) -> int:
        repeats = self._pairs.repeats
        if repeats is None:
            return ids.flat.size
        return int(np.dot(ids.lengths, repeats.astype(np.int64)))

    def _order(self, epoch: int) -> "Order":
        # Threads of tf.data may be on both sides of an epoch's end.
        with self._lock:
            if epoch not in self._epochs:
                self._epochs = {
                    other: order
                    for other, order in self._epochs.items()
                    if abs(other - epoch) == 1
                }
                self._epochs[epoch] = self._draw(epoch)
            return self._epochs[epoch]

    def _draw(self, epoch: int) -> "Order":
        random = np.random.default_rng((self._seed, epoch))
        pairs, left = [], np.zeros(0, np.int32)
        for bucket, (rows, *_) in enumerate(self.shapes):
            indices = np.flatnonzero(self._bucket == bucket).astype(np.int32)
            if self._pairs.repeats is not None:
                indices = np.repeat(indices, self._pairs.repeats[indices])
            random.shuffle(indices)
            indices = np.concatenate([left, indices])
            whole = len(indices) // rows * rows
            pairs.append(indices[:whole])
            left = indices[whole:]
        rows = np.repeat([rows for rows, *_ in self.shapes], self.num_batches)
        return Order(
            np.concatenate([*pairs, left]),
            np.concatenate([[0], np.cumsum(rows)]),
            np.repeat(self.shapes, self.num_batches, axis=0),
            random.permutation(self.steps_per_epoch),
        )


@dataclasses.dataclass(frozen=True)
class Order:
    """The batches of an epoch, in arrays: there may be millions.

    Attributes:
        pairs: Int32 array, pairs in the order of batches sorted by shape.
        starts: Int array, where in `pairs` each of these begins.
        shapes: Int array `(n, 3)`, rows and lengths of each.
        places: Int array, which of these is batch `j` of the epoch.
    """

    pairs: np.ndarray
    starts: np.ndarray
    shapes: np.ndarray
    places: np.ndarray

    def __getitem__(self, place: int):
        """Returns shape and pairs of a batch, the pairs not padded."""
        sorted_place = self.places[place]
        start, end = self.starts[sorted_place : sorted_place + 2]
        shape = tuple(self.shapes[sorted_place].tolist())
        return shape, self.pairs[start:end]


def rows_of(batch_tokens: int, length: int) -> int:
    rows = batch_tokens // length // ROW_MULTIPLE * ROW_MULTIPLE
    return max(ROW_MULTIPLE, rows)


def shift_right(labels: np.ndarray) -> np.ndarray:
    """Returns what the decoder sees when it is to predict `labels`."""
    shifted = np.zeros_like(labels)
    shifted[:, 1:] = labels[:, :-1]
    shifted[:, 0] = BEGIN_ID
    return np.where(labels != PADDING_ID, shifted, PADDING_ID)


def size_of(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns one length for each pair, by which it finds its shape.

    It is that of the longer side, when the lengths of the language that takes
    more tokens on the whole are shrunk to those of the other.
    """
    ratio = np.float32(targets.sum() / sources.sum())
    if ratio < 1:
        sources, targets, ratio = targets, sources, 1 / ratio
    return np.maximum(sources, np.ceil(targets / ratio).astype(np.int32))


def longest_of(
    lengths: np.ndarray, sizes: np.ndarray, boundaries: list[int]
) -> list[int]:
    """Returns, for each boundary, the greatest length of what it holds."""
    longest = np.zeros(boundaries[-1] + 1, lengths.dtype)
    np.maximum.at(longest, sizes, lengths)
    return np.maximum.accumulate(longest)[boundaries].tolist()


def choose_boundaries(lengths: np.ndarray, count: int) -> list[int]:
    """Chooses the lengths to pad to, so that the padding is least.

    Args:
        lengths: Int array of sequence lengths, each at least 1.
        count: Int, number of boundaries at most.

    Returns:
        Ascending list of ints; the last is the greatest length.
    """
    histogram = np.bincount(lengths)
    sequences = np.cumsum(histogram)
    longest = len(histogram) - 1
    # cost[i]: fewest positions that hold all sequences of length <= i, and
    # chosen[k][i]: the boundary before i when k boundaries were used.
    cost = np.where(np.arange(longest + 1) > 0, np.inf, 0.0)
    chosen = []
    ends = np.arange(longest + 1)
    # added[i, j]: positions of everything in (j, i], padded to i.
    added = (sequences[:, None] - sequences[None, :]) * ends[:, None]
    for _ in range(count):
        candidates = cost[None, :] + added  # Boundary j < i, then i.
        candidates[ends[:, None] < ends[None, :]] = np.inf
        chosen.append(np.argmin(candidates, axis=1))
        cost = np.min(candidates, axis=1)
    boundaries, end = [], longest
    for previous in reversed(chosen):
        if end > previous[end]:
            boundaries.append(int(end))
        end = previous[end]
    return boundaries[::-1]


def make_dataset(
    plan: BatchPlan,
    strategy: tf.distribute.Strategy,
    first: int = 0,
    last: int | None = None,
    micro_batches: int = 1,
):
    """Makes the dataset that `fit` reads: batches `first` to `last - 1`.

    Args:
        plan: The plan of the batches.
        strategy: The strategy; each of its replicas gets its own rows.
        first: Int, number of the first batch.
        last: Int, number after the last batch, or `None` for no end.
        micro_batches: Positive int `K`, parts of a batch that a replica takes
            one after the other.

    Returns:
        Dataset of dicts: int32 `"source_ids"` of shape `(K, n, S)`,
        `"target_ids"` and `"labels"` of shape `(K, n, T)`, and float32
        `"num_tokens"`, a scalar: target tokens in the batch of all replicas.
    """
    names = ("source_ids", "target_ids", "labels", "num_tokens")
    dtypes = (tf.int32, tf.int32, tf.int32, tf.float32)
    shapes = ((micro_batches, None, None),) * 3 + ((),)
    last = np.iinfo(np.int64).max if last is None else last

    def for_pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        replicas = context.num_replicas_in_sync
        local_replicas = replicas // context.num_input_pipelines
        offset = context.input_pipeline_id * local_replicas

        def read(i):
            j, replica = (
                int(i) // local_replicas,
                offset + int(i) % local_replicas,
            )
            parts = [
                plan.batch(j, replica + k * replicas, replicas * micro_batches)
                for k in range(micro_batches)
            ]
            *ids, tokens = zip(*parts, strict=True)
            return *(np.stack(part) for part in ids), tokens[0]

        def load(i):
            values = tf.numpy_function(read, [i], dtypes, stateful=False)
            for value, shape in zip(values, shapes, strict=True):
                value.set_shape(shape)
            return dict(zip(names, values, strict=True))

        end = last * local_replicas if last < 2**60 else last
        numbers = tf.data.Dataset.range(first * local_replicas, end)
        dataset = numbers.map(load, num_parallel_calls=2, deterministic=True)
        # There is nothing to tune, and an iterator whose tuning thread sleeps
        # takes up to a minute to end.
        options = tf.data.Options()
        options.autotune.enabled = False
        return dataset.prefetch(4).with_options(options)

    if strategy.num_replicas_in_sync == 1:
        return for_pipeline(tf.distribute.InputContext())
    return strategy.distribute_datasets_from_function(for_pipeline)
