"""Maps the weights of a Transformer to the tensors of other systems.

Their position encodings have sines in the first half of the features and
cosines in the second; ours alternate (Section 3.5). No other part depends on
the order of features. So all weights are permuted along the model's width, and
the layers stay the same.

A weight has the path of its Keras variable, without the model's name, such as
`("encoder", "layer_0", "attention", "query", "kernel")`.
"""

from collections.abc import Callable

import numpy as np

from command_line.progress import show_progress
from convert.vocabularies import NEVER, Vocabulary
from keras_transformer import Transformer

# The axes of the model's width: those of a kernel or gain, and of a bias.
WIDTH_AXES = {
    **dict.fromkeys(("query", "key", "value", "expand"), ((0,), ())),
    **dict.fromkeys(("output", "contract"), ((1,), (0,))),
    **dict.fromkeys(("forget", "update"), ((0, 1), (0,))),
    "normalization": ((0,), (0,)),
}


def weights_of(model: Transformer) -> dict[tuple[str, ...], object]:
    """Returns the variables of both stacks by their paths."""
    weights = (*model.encoder.weights, *model.decoder.weights)
    return {tuple(weight.path.split("/")[1:]): weight for weight in weights}


def to_our_order(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Reorders an array from their order of features to ours."""
    for axis in axes:
        order = np.arange(array.shape[axis]).reshape(2, -1).T.ravel()
        array = np.take(array, order, axis=axis)
    return array


def to_their_order(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Reorders an array from our order of features to theirs."""
    for axis in axes:
        order = np.arange(array.shape[axis]).reshape(-1, 2).T.ravel()
        array = np.take(array, order, axis=axis)
    return array


def width_axes(path: tuple[str, ...]) -> tuple[int, ...]:
    return WIDTH_AXES[path[-2]][path[-1] in ("bias", "beta")]


def copy_layers(
    model: Transformer,
    read: Callable[[tuple[str, ...], tuple[int, ...]], np.ndarray],
    in_halves: bool = True,
) -> None:
    """Sets the weights of both stacks.

    Args:
        model: A `Transformer`.
        read: Function from path and shape of a weight to their array.
        in_halves: Bool, whether their order of features is another.
    """
    for path, variable in show_progress(weights_of(model).items(), unit="weight"):
        array = read(path, tuple(variable.shape))
        variable.assign(to_our_order(array, width_axes(path) if in_halves else ()))


def copy_table(
    embedding, table: np.ndarray, rows: np.ndarray, in_halves: bool = True
) -> None:
    """Sets the matrix of a `TokenEmbedding`.

    Args:
        embedding: The layer.
        table: Their matrix.
        rows: Int array, the index of each of our rows in the matrix; -1 for
            zeros.
        in_halves: Bool, whether their order of features is another.
    """
    ours = to_our_order(table[rows], (1,) if in_halves else ())
    ours[rows < 0] = 0.0
    embedding.embeddings.assign(ours)


def copy_bias(embedding, bias: np.ndarray, vocabulary: Vocabulary) -> None:
    """Sets the bias of the logits of a `TokenEmbedding` from theirs."""
    bias = bias[vocabulary.rows]
    embedding.bias.assign(np.where(vocabulary.can_be_generated, bias, NEVER))
