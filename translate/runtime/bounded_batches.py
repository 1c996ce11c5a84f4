"""Sizes of batches, and how many a model translates at a time."""

from collections.abc import Callable, Iterator

import tensorflow as tf

from command_line.cpu_count import count_processors
from export.bundle.server_config import WARMUP_BATCH_SIZES

# Maximum batch size of the server, as in `batching_parameters.txt`.
MAX_ROWS = WARMUP_BATCH_SIZES[-1]
# Maximum number of sentences in a batch times the square of the bytes of the
# longest one. It bounds the attention weights of a head and layer. `align`
# computes those of all heads and layers, and refuses more than 2**26 numbers.
MAX_SQUARES = 2**21
MAX_ALIGNED_SQUARES = 2**17


def cut_batches(
    sizes: list[int], fits: Callable[[int, int], bool]
) -> Iterator[list[int]]:
    """Yields batches of indices of similar size, the smallest first.

    Args:
        sizes: Size of each item.
        fits: Function from the number of items of a batch and the size of its
            largest one to whether the model takes it. One item always is a batch.
    """
    batch = []
    for index in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        # The item is the largest so far, so the others are padded to it.
        if batch and not fits(len(batch) + 1, sizes[index]):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def in_batches(items: list, max_squares: int, answer) -> list:
    """Returns the answers to texts, or to pairs of them, of similar length."""

    def fits(rows, longest):
        return rows <= MAX_ROWS and rows * longest**2 <= max_squares

    pairs = [(item,) if isinstance(item, str) else item for item in items]
    sizes = [max(len(text.encode()) for text in pair) for pair in pairs]
    found = [None] * len(items)
    for batch in cut_batches(sizes, fits):
        answers = answer([items[i] for i in batch])
        for index, each in zip(batch, answers, strict=True):
            found[index] = each
    return found


def count_batches() -> int:
    """Returns how many batches a model in this process translates at a time.

    One for each thread of TensorFlow, and at least two: one is for short requests.
    """
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return max(2, threads or count_processors())
