"""Random batches, and the FLOPs of their update.

NumPy alone, so that a process that runs PyTorch holds no TensorFlow.
"""

import numpy as np

from benchmarks.model_sizes import BOS_ID, PADDING_ID, Size


def make_batch(size: Size, fill: float) -> dict[str, np.ndarray]:
    """Makes a batch of random ids, as the training model takes it.

    `fill`, in [0.5, 1], is the share of positions that are tokens: the lengths are
    spread evenly from `2 * fill - 1` of `size.length` to all of it.
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
