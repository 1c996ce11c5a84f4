"""Batches of sentences of similar length, counted in tokens (Section 5.1).

Batch `j` is a pure function of the corpus, the options, the seed and `j`. So
training can start at any batch without reading those before.
"""

import dataclasses
import fractions
import functools
import threading

import numpy as np

from keras_transformer.special_ids import BOS_ID, PADDING_ID
from train.data.bucketing import (
    ROW_MULTIPLE,
    bucket_length_of,
    choose_boundaries,
    longest_by_boundary,
    sentences_in_batch,
)
from train.data.encoded_pairs import EncodedPairs

MAX_SHAPES = 16


class BatchPlan:
    """Assigns sentence pairs to batches.

    Each pair goes into the smallest of at most 16 shapes that is large enough.
    A shape has a number of sentences, and a length for each side. Pairs that do
    not fill a batch of their shape move to the next larger shape. So a pass
    over the corpus has every pair once, and only the last batch of the largest
    shape is filled up with padding.

    Of a part of a mixture with weight `w`, a pass takes `w n` of the `n`
    pairs of each shape, rounded, and at least one; the next pass takes the
    pairs that follow. So all passes have equally many batches of each shape,
    and after `n` passes each pair has occurred equally often.

    Args:
        pairs: The encoded corpus.
        batch_tokens: Positive int, positions of the longer side in a batch,
            padding included. A batch of sentences padded to `length` has
            `batch_tokens // length` sentences, rounded down to a multiple of
            `row_multiple`, but at least `row_multiple`.
        seed: Int, seed of the order.
        row_multiple: Positive int that divides the number of sentences of every
            batch; with 8, the devices get equal shares if there are 2, 4 or 8.

    Attributes:
        shapes: Tuple of `(sentences, source length, target length)`, shortest
            first.
        num_batches: Tuple of ints, batches of each shape in a pass.
        batches_per_pass: Int, their sum.
        tokens: Int, tokens of both sides in a pass without padding; an
            average if pairs have weights.
        target_tokens: Int, those of the targets.
        fill: Float in (0, 1], tokens divided by positions, of both sides.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        batch_tokens: int,
        seed: int,
        row_multiple: int = ROW_MULTIPLE,
    ):
        self._pairs = pairs
        self._seed = seed
        sides = [pairs.sources.lengths, pairs.targets.lengths]
        sizes = bucket_length_of(*sides)
        boundaries = choose_boundaries(sizes, MAX_SHAPES)
        bucket_of = np.searchsorted(boundaries, np.arange(boundaries[-1] + 1))
        # The number of the shape of each pair.
        self._buckets = bucket_of.astype(np.uint8)[sizes]
        self.shapes = tuple(
            (sentences_in_batch(batch_tokens, max(lengths), row_multiple), *lengths)
            for lengths in zip(
                *(longest_by_boundary(side, sizes, boundaries) for side in sides),
                strict=True,
            )
        )
        self._parts = list(pairs.slices())
        self.num_batches = self._count_batches()
        self.batches_per_pass = sum(self.num_batches)
        self.target_tokens = self._count_tokens(pairs.targets.lengths)
        tokens = self._count_tokens(pairs.sources.lengths) + self.target_tokens
        positions = sum(
            batches * rows * (source + target)
            for batches, (rows, source, target) in zip(
                self.num_batches, self.shapes, strict=True
            )
        )
        self.tokens = tokens
        self.fill = tokens / positions
        self._cached_draw = functools.lru_cache(maxsize=2)(self._draw)
        self._lock = threading.Lock()

    def shape(self, j: int) -> tuple[int, int, int]:
        """Returns rows, source length and target length of batch `j`."""
        pass_index, place = divmod(j, self.batches_per_pass)
        return self._order(pass_index)[place][0]

    def batch(
        self, j: int, part: int = 0, num_parts: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns batch `j`, or a replica's part of it.

        Args:
            j: Int, number of the batch, from 0.
            part: Int, takes the rows `part`, `part + num_parts`, …
            num_parts: Int, number of parts of the batch. All have equally many
                rows; rows of padding fill them up.

        Returns:
            Int32 arrays of source ids, `(n, S)`, and of target ids (which begin
            with BOS) and labels (which end with EOS), `(n, T)`; and a float32
            scalar, the number of target tokens in the whole batch.
        """
        pass_index, place = divmod(j, self.batches_per_pass)
        (rows, *lengths), indices = self._order(pass_index)[place]
        tokens = self._pairs.targets.lengths[indices].sum()
        mine = indices[part::num_parts]
        sources = self._pairs.sources.pad(mine, lengths[0])
        labels = self._pairs.targets.pad(mine, lengths[1])
        missing = -(-rows // num_parts) - len(mine)
        sources, labels = (np.pad(x, ((0, missing), (0, 0))) for x in (sources, labels))
        return sources, shift_right(labels), labels, np.float32(tokens)

    def _count_batches(self) -> tuple[int, ...]:
        """Returns the batches of each shape."""
        batches = []
        left = 0
        for bucket, (rows, *_) in enumerate(self.shapes):
            for part, weight in self._parts:
                count = np.count_nonzero(self._buckets[part] == bucket)
                left += count_chosen(count, weight)
            whole, left = divmod(left, rows)
            batches.append(whole)
        return (*batches[:-1], batches[-1] + bool(left))

    def _count_tokens(self, lengths: np.ndarray) -> int:
        """Returns the tokens of a pass; an average if pairs have weights."""
        tokens = 0
        for part, weight in self._parts:
            if weight == 1:
                tokens += lengths[part].sum()
                continue
            for bucket in range(len(self.shapes)):
                mine = lengths[part][self._buckets[part] == bucket]
                drawn = count_chosen(len(mine), weight)
                tokens += mine.sum() * drawn / max(1, len(mine))
        return round(float(tokens))

    def _order(self, pass_index: int) -> "PassOrder":
        # Threads of tf.data may read batches of two passes at a time.
        with self._lock:
            return self._cached_draw(pass_index)

    def _draw(self, pass_index: int) -> "PassOrder":
        random = np.random.default_rng((self._seed, pass_index))
        pairs, left = [], np.zeros(0, np.int32)
        for bucket, (rows, *_) in enumerate(self.shapes):
            indices = self._choose(bucket, pass_index)
            random.shuffle(indices)
            indices = np.concatenate([left, indices])
            whole = len(indices) // rows * rows
            pairs.append(indices[:whole])
            left = indices[whole:]
        rows = np.repeat([rows for rows, *_ in self.shapes], self.num_batches)
        return PassOrder(
            np.concatenate([*pairs, left]),
            np.concatenate([[0], np.cumsum(rows)]),
            np.repeat(self.shapes, self.num_batches, axis=0),
            random.permutation(self.batches_per_pass),
        )

    def _choose(self, bucket: int, pass_index: int) -> np.ndarray:
        """Returns the pairs of a shape in a pass."""
        chosen = []
        for number, (part, weight) in enumerate(self._parts):
            pairs = np.flatnonzero(self._buckets[part] == bucket)
            pairs = (pairs + part.start).astype(np.int32)
            if weight != 1:
                # Four numbers, so the seed differs from that of every pass.
                seed = (self._seed, number, bucket, 1)
                pairs = choose_pairs(pairs, weight, pass_index, seed)
            chosen.append(pairs)
        return np.concatenate(chosen)


@dataclasses.dataclass(frozen=True)
class PassOrder:
    """The batches of a pass, as arrays, since there may be millions.

    Attributes:
        pairs: Int array, pairs in the order of batches sorted by shape.
        starts: Int array, the index in `pairs` at which each batch begins.
        shapes: Int array `(n, 3)`, sentences and lengths of each batch.
        places: Int array, the index of batch `j` of the pass in the sorted
            batches.
    """

    pairs: np.ndarray
    starts: np.ndarray
    shapes: np.ndarray
    places: np.ndarray

    def __getitem__(self, place: int):
        """Returns shape and pairs of a batch, without padding."""
        sorted_place = self.places[place]
        start, end = self.starts[sorted_place : sorted_place + 2]
        shape = tuple(self.shapes[sorted_place].tolist())
        return shape, self.pairs[start:end]


def shift_right(labels: np.ndarray) -> np.ndarray:
    """Returns the inputs of the decoder that predicts `labels`."""
    shifted = np.zeros_like(labels)
    shifted[:, 1:] = labels[:, :-1]
    shifted[:, 0] = BOS_ID
    return np.where(labels != PADDING_ID, shifted, PADDING_ID)


def count_chosen(count: int, weight: fractions.Fraction) -> int:
    """Returns the number of pairs of a weight in a pass, at least one."""
    return max(1, round(weight * int(count))) if count else 0


def choose_pairs(
    pairs: np.ndarray,
    weight: fractions.Fraction,
    pass_index: int,
    seed: tuple[int, ...],
) -> np.ndarray:
    """Returns the pairs of a pass, which follow those of the pass before.

    The order of all pairs depends only on the seed. After the last pair comes
    the first; with a weight above 1, a pass has a pair several times.
    """
    circle = np.random.default_rng(seed).permutation(pairs)
    count = count_chosen(len(pairs), weight)
    return np.resize(np.roll(circle, -pass_index * count), count)
