"""Maps the weights of a Transformer to the tensors of other systems.

Their position encodings have sines in the first half of the features and
cosines in the second; ours alternate (Section 3.5). No other part depends on
the order of features. So all weights are permuted along the model's width, and
the layers stay the same.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from command_line.progress import show_progress
from convert.tensor_files import Tensors
from convert.vocabularies import NEVER, Vocabulary
from keras_transformer import Transformer

PROJECTIONS = ("query", "key", "value", "output")


class Weight(NamedTuple):
    """A weight of a layer, and its axes of the model's width."""

    variable: Any  # Of Keras.
    stack: str  # "encoder" or "decoder".
    layer: int
    part: str  # "self", "memory", "recurrence" or "feed_forward".
    name: str  # For example "query.kernel" or "norm.gamma".
    feature_axes: tuple[int, ...]  # The axes to permute.


def weights_of(model: Transformer) -> Iterator[Weight]:
    """Yields the weights of all layers except the embeddings."""
    for index, layer in enumerate(model.encoder.layers):
        where = "encoder", index
        yield from attention_of(layer.attention, *where, "self")
        yield from norm_of(layer.attention_residual, *where, "self")
        yield from feed_forward_of(layer, *where)
    for index, layer in enumerate(model.decoder.layers):
        where = "decoder", index
        if layer.mixer == "ssru":
            part, unit = "recurrence", layer.recurrence
            both = (0, 1)
            yield Weight(unit.forget.kernel, *where, part, "forget.kernel", both)
            yield Weight(unit.forget.bias, *where, part, "forget.bias", (0,))
            yield Weight(unit.update.kernel, *where, part, "update.kernel", both)
        else:
            part = "self"
            yield from attention_of(layer.self_attention, *where, part)
        yield from norm_of(layer.self_attention_residual, *where, part)
        yield from attention_of(layer.memory_attention, *where, "memory")
        yield from norm_of(layer.memory_attention_residual, *where, "memory")
        yield from feed_forward_of(layer, *where)


def attention_of(attention, *where) -> Iterator[Weight]:
    for name in PROJECTIONS:
        projection = getattr(attention, f"{name}_projection")
        is_output = name == "output"
        axes = (1,) if is_output else (0,)
        yield Weight(projection.kernel, *where, f"{name}.kernel", axes)
        if projection.use_bias:
            axes = (0,) if is_output else ()
            yield Weight(projection.bias, *where, f"{name}.bias", axes)


def norm_of(residual, *where) -> Iterator[Weight]:
    for name in ("gamma", "beta"):
        variable = getattr(residual.normalization, name)
        yield Weight(variable, *where, f"norm.{name}", (0,))


def feed_forward_of(layer, stack, index) -> Iterator[Weight]:
    where = stack, index, "feed_forward"
    first, second = layer.feed_forward.expand, layer.feed_forward.contract
    yield Weight(first.kernel, *where, "expand.kernel", (0,))
    yield Weight(first.bias, *where, "expand.bias", ())
    yield Weight(second.kernel, *where, "contract.kernel", (1,))
    yield Weight(second.bias, *where, "contract.bias", (0,))
    yield from norm_of(layer.feed_forward_residual, *where)


def feature_order(width: int) -> np.ndarray:
    """Returns the index of each of our features in their order."""
    return np.arange(width).reshape(2, -1).T.ravel()


def to_our_order(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Reorders an array from their order of features to ours."""
    for axis in axes:
        order = feature_order(array.shape[axis])
        array = np.take(array, order, axis=axis)
    return array


def to_their_order(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Reorders an array from our order of features to theirs."""
    for axis in axes:
        order = np.argsort(feature_order(array.shape[axis]))
        array = np.take(array, order, axis=axis)
    return array


def copy_layers(
    model: Transformer, read: Callable[[Weight], np.ndarray], in_halves: bool = True
):
    """Sets the weights of the layers, in our order of features.

    Args:
        model: A `Transformer`.
        read: Function from a `Weight` to their array, of its shape.
        in_halves: Bool, whether their order of features is another.
    """
    weights = list(weights_of(model))
    for weight in show_progress(weights, len(weights), "weight"):
        axes = weight.feature_axes if in_halves else ()
        weight.variable.assign(to_our_order(read(weight), axes))


def copy_table(
    embedding, tensors: Tensors, name: str, rows: np.ndarray, in_halves: bool = True
):
    """Sets the matrix of a `TokenEmbedding`.

    Args:
        embedding: The layer.
        tensors: Their tensors.
        name: Name of the matrix.
        rows: Int array, the index of each of our rows in the matrix; -1 for
            zeros.
        in_halves: Bool, whether their order of features is another.
    """
    copy_rows(
        embedding, tensors.take(name, tensors.shapes.get(name, ())), rows, in_halves
    )


def copy_rows(embedding, table: np.ndarray, rows: np.ndarray, in_halves: bool = True):
    """Sets the matrix of a `TokenEmbedding` from theirs, as `copy_table`."""
    ours = to_our_order(table[rows], (1,) if in_halves else ())
    ours[rows < 0] = 0.0
    embedding.embeddings.assign(ours)


def copy_bias(embedding, bias: np.ndarray, vocabulary: Vocabulary) -> None:
    """Sets the bias of the logits of a `TokenEmbedding` from theirs."""
    bias = bias[vocabulary.rows]
    embedding.bias.assign(np.where(vocabulary.can_be_generated, bias, NEVER))
