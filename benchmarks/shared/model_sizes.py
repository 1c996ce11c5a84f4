"""Model sizes, random batches and FLOP counts of the benchmarks.

NumPy alone, so that a process that runs PyTorch holds no TensorFlow.
"""

import dataclasses

import numpy as np

# Ids of padding, EOS and BOS, as in `train`.
PADDING_ID = 0
EOS_ID = 1
BOS_ID = 3
LABEL_SMOOTHING = 0.1
BEAM_SIZE = 4
# With another, CTranslate2's score would not be this package's.
LENGTH_PENALTY = 0.0
MAX_EXTRA_LENGTH = 50


@dataclasses.dataclass(frozen=True)
class Size:
    """A model, as `Architecture` describes it, and the batch of one update."""

    num_layers: int
    hidden_dim: int
    intermediate_dim: int
    num_heads: int
    dropout: float
    vocabulary_size: int
    rows: int  # Sentence pairs in a batch.
    length: int  # Positions of a sentence, padding included.
    decoder_layers: int | None = None
    decoder_mixer: str = "attention"

    def hyperparameters(self) -> dict:
        """Returns the arguments of `Architecture`."""
        width = self.hidden_dim // self.num_heads
        names = ("vocabulary_size", "rows", "length")
        given = {k: v for k, v in vars(self).items() if k not in names}
        return {**given, "key_dim": width, "value_dim": width}


SIZES = {
    "base": Size(6, 512, 2048, 8, 0.1, 37_000, 64, 32),
    "tiny": Size(4, 128, 256, 4, 0.3, 10_000, 256, 32),
    "check": Size(1, 16, 32, 2, 0.1, 100, 8, 8),
}
# Students as wide as Mozilla's `tiny`, with 6 layers in the encoder.
STUDENT = Size(6, 256, 1536, 8, 0.0, 8_000, 64, 32)
STUDENTS = {
    "6-6": STUDENT,
    "6-2": dataclasses.replace(STUDENT, decoder_layers=2),
    "6-2-ssru": dataclasses.replace(STUDENT, decoder_layers=2, decoder_mixer="ssru"),
}


def make_batch(size: Size, fill: float) -> dict[str, np.ndarray]:
    """Makes a batch of random ids, as the training model takes it.

    Args:
        size: The size of the batch.
        fill: Float in [0.5, 1], the share of positions that are tokens: the
            lengths are spread evenly from `2 * fill - 1` of `size.length` to
            all of it.
    """
    random = np.random.default_rng(0)
    shape = (size.rows, size.length)
    columns = np.arange(size.length)
    shares = np.linspace(2 * fill - 1, 1, size.rows)
    lengths = np.maximum(1, np.round(size.length * shares))[:, None]
    source_ids, labels = (
        np.where(
            columns < random.permutation(lengths),
            random.integers(4, size.vocabulary_size, shape),
            PADDING_ID,
        ).astype(np.int32)
        for _ in range(2)
    )
    target_ids = np.roll(labels, 1, axis=1)
    target_ids[:, 0] = BOS_ID
    target_ids[labels == PADDING_ID] = PADDING_ID
    return {
        "source_ids": source_ids,
        "target_ids": target_ids,
        "labels": labels,
        "num_tokens": np.float32((labels != PADDING_ID).sum()),
    }


def count_flops(size: Size, num_logits: int) -> int:
    """Counts the floating-point operations of an update's matrix products.

    A product of `(m, k)` by `(k, n)` takes `2 m k n`; the backward pass has
    two products for each of the forward pass. Softmax, normalization and the
    optimizer are not counted, and logits for `num_logits` positions only.
    """
    positions = size.rows * size.length
    width = size.hidden_dim
    projections = 4 * 2 * positions * width**2
    attention = projections + 2 * 2 * positions * size.length * width
    feed_forward = 2 * 2 * positions * width * size.intermediate_dim
    encoder = size.num_layers * (attention + feed_forward)
    decoder = size.num_layers * (2 * attention + feed_forward)
    logits = 2 * num_logits * width * size.vocabulary_size
    return 3 * (encoder + decoder + logits)


def sine_positions(length: int, width: int) -> np.ndarray:
    """Returns the position vectors of Section 3.5, `(length, width)`."""
    rates = 10_000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] * rates
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return both.reshape(length, width).astype(np.float32)
