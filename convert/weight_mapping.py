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

from command_line.errors import UserError
from command_line.progress import show_progress
from convert.tensor_files import Tensors
from convert.vocabularies import NEVER, ZERO_ROW, Vocabulary
from keras_transformer import Architecture, Transformer

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


def width_axes(path: tuple[str, ...]) -> tuple[int, ...]:
    return WIDTH_AXES[path[-2]][path[-1] in ("bias", "beta")]


def make_model(
    architecture: Architecture,
    tensors: Tensors,
    vocabularies: tuple[Vocabulary, Vocabulary],
    shares: bool,
    sequence_length: int,
    take_table: Callable[[str], np.ndarray],
    take_weight: Callable[[tuple[str, ...], tuple[int, ...]], np.ndarray],
    in_halves: bool = True,
) -> Transformer:
    """Makes a model, and sets all weights but learned positions.

    `take_table` returns their matrix of `"source"`, `"target"` or `"output"`, or
    their `"bias"` of the logits; `take_weight` their array of a weight, by its path
    and shape. It `shares` one matrix between both sides; `in_halves` says whether
    their order of features is another.
    """
    needed = count_weights(architecture)
    if needed > tensors.num_elements:
        raise UserError(
            f"{tensors.path} must hold the model of its configuration, whose "
            f"layers have {needed:,} weights. "
            f"Received: {tensors.num_elements:,}"
        )
    sources, targets = vocabularies
    source_size = None if shares else len(sources)
    try:
        model = Transformer(
            *(len(targets), architecture, sequence_length, source_size),
            name="transformer",
        )
    except (ValueError, TypeError) as error:
        raise UserError(f"the model cannot be made: {error}") from None
    for which, embedding, ours in (
        ("source", model.source_embedding, sources),
        ("target", model.embedding, targets),
        ("output", model.output_embedding, targets),
    ):
        if embedding is not None:
            table = take_table(which)[ours.rows]
            table[ours.rows == ZERO_ROW] = 0.0
            embedding.embeddings.assign(to_our_order(table, (1,) if in_halves else ()))
    if model.embedding_of_logits.bias is not None:
        bias = take_table("bias").ravel()[targets.rows]
        bias = np.where(targets.can_be_generated, bias, NEVER)
        model.embedding_of_logits.bias.assign(bias)
    for path, variable in show_progress(weights_of(model).items(), unit="weight"):
        array = take_weight(path, tuple(variable.shape))
        variable.assign(to_our_order(array, width_axes(path) if in_halves else ()))
    tensors.check_all_taken()
    return model


def count_weights(architecture: Architecture) -> int:
    """Returns the number of weights in the matrices of all layers."""
    width = architecture.hidden_dim
    features = architecture.key_dim + architecture.value_dim
    attention = 2 * width * architecture.num_heads * features
    mixer = 2 * width**2 if architecture.decoder_mixer == "ssru" else attention
    rest = attention + 2 * width * architecture.intermediate_dim
    decoder = architecture.num_decoder_layers * (mixer + rest)
    return architecture.num_layers * rest + decoder
