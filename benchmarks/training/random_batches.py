"""Random batches.

NumPy alone, so that a process that runs PyTorch holds no TensorFlow.
"""

import numpy as np

from benchmarks.constants import BOS_ID, PADDING_ID, Size


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
