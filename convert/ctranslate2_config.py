"""Reads the hyperparameters of a CTranslate2 model.

Options give some of them, the shapes of tensors and the table of position
vectors the others. An option that is unknown here is refused.
"""

import pathlib
from typing import NamedTuple

import numpy as np

from command_line.errors import UserError
from convert.checked_options import CheckedOptions
from convert.marian_config import max_wavelength
from convert.tensor_files import Tensors
from keras_transformer import Architecture

ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
EPSILON = 1e-5
# Stored in 16 bits, a table of sines is this near to its formula.
TOLERANCE = 8e-3
# Options that must be 0 or absent; others mean a computation that is not
# supported.
MUST_BE_ZERO = (
    *("decoder/alibi", "encoder/multi_query_attention"),
    "decoder/final_logit_softcapping",
)
# Options that are read.
OF_STACKS = ("num_heads", "pre_norm", "activation", "scale_embeddings")
# Options of several embeddings, of alignments and of ALiBi have no effect.
KNOWN = {
    *(f"{stack}/{name}" for stack in ("encoder", "decoder") for name in OF_STACKS),
    *("decoder/start_from_zero_embedding", "encoder/embeddings_merge"),
    *("decoder/alignment_layer", "decoder/alignment_heads"),
    *("decoder/alibi_use_positive_positions", "decoder/scale_alibi"),
    *MUST_BE_ZERO,
}
EMBEDDINGS = {
    "source": "encoder/embeddings_0/weight",
    "target": "decoder/embeddings/weight",
    "output": "decoder/projection/weight",
}
POSITIONS = (
    "encoder/position_encodings/encodings",
    "decoder/position_encodings/encodings",
)


class Sines(NamedTuple):
    """Parameters of a table of sines."""

    max_wavelength: float
    offset: int  # Index of the first position.
    in_halves: bool  # Whether all sines come before all cosines.


def read_options(found: dict[str, int | float], path: pathlib.Path) -> CheckedOptions:
    """Returns the options of a file, all of which are known."""
    options = CheckedOptions(found, path)
    options.check(dict.fromkeys(MUST_BE_ZERO, 0))
    for name, value in found.items():
        if name not in KNOWN:
            raise options.error(name, "absent", value)
    return options


def read_architecture(
    tensors: Tensors, options: CheckedOptions, config: dict, sines: Sines | None
) -> Architecture:
    """Reads the hyperparameters from options and shapes."""
    options.both("/activation", 0)
    width = tensors.shapes[EMBEDDINGS["target"]][1]
    heads = options.both("/num_heads", 8)
    if heads < 1 or width % heads:
        raise options.error("encoder/num_heads", f"a divisor of {width}", heads)
    positions = {"positions": "learned"}
    if sines is not None:
        positions = {
            "max_wavelength": sines.max_wavelength,
            "position_offset": sines.offset,
        }
    inner = tensors.shapes.get("encoder/layer_0/ffn/linear_0/weight", (0,))[0]
    return Architecture(
        num_layers=count_layers(tensors, "encoder"),
        decoder_layers=count_layers(tensors, "decoder"),
        hidden_dim=width,
        intermediate_dim=inner,
        num_heads=heads,
        key_dim=width // heads,
        value_dim=width // heads,
        norm="pre" if options.both("/pre_norm") else "post",
        use_bias="encoder/layer_0/self_attention/linear_0/bias" in tensors,
        activation=options.choice("encoder/activation", ACTIVATIONS, 0),
        scale_embedding=is_scaled(options, width),
        logits_bias="decoder/projection/bias" in tensors,
        norm_epsilon=config.get("layer_norm_epsilon") or EPSILON,
        tied_output=is_shared(tensors, EMBEDDINGS["output"], EMBEDDINGS["target"]),
        **positions,
    )


def count_layers(tensors: Tensors, stack: str) -> int:
    count = 0
    while f"{stack}/layer_{count}/ffn/linear_0/weight" in tensors:
        count += 1
    return count


def is_scaled(options: CheckedOptions, width: int) -> bool:
    """Returns whether embeddings are multiplied by the root of the width."""
    scale = options.both("/scale_embeddings", 1)
    if type(scale) is int:  # A switch.
        return bool(scale)
    if np.isclose(scale, [1.0, width**0.5], rtol=1e-3).any():
        return scale > 1.01
    wanted = f"1 or the root of {width}"
    raise options.error("encoder/scale_embeddings", wanted, scale)


def is_shared(tensors: Tensors, one: str, other: str) -> bool:
    return np.array_equal(tensors.take(one), tensors.take(other))


def read_positions(tensors: Tensors) -> tuple[Sines | None, np.ndarray | None]:
    """Returns the sines of a model, or else its learned positions."""
    name = EMBEDDINGS["target"]
    shape = tensors.shapes.get(name, ())
    if len(shape) != 2 or shape[1] < 4 or shape[1] % 2:
        raise UserError(
            f"{name} of {tensors.path} must have two axes, and an even number "
            f"of features from 4 on. Received: shape {shape}"
        )
    width = shape[1]
    if not any(name in tensors for name in POSITIONS):
        # CTranslate2 computes these.
        return Sines(max_wavelength(width), offset=1, in_halves=True), None
    one, other = map(tensors.take, POSITIONS)
    if not np.array_equal(one, other):
        raise UserError(
            f"{POSITIONS[1]} of {tensors.path} must be that of the encoder. "
            "Received: another table"
        )
    tensors.check(POSITIONS[0], (max(1, *one.shape[:1]), width))
    sines = find_sines(one)
    return sines, one if sines is None else None


def find_sines(table: np.ndarray) -> Sines | None:
    """Returns the parameters of a table `(T, D)`, or `None` if it is learned.

    It has one row at least, and an even number of features, four at least. The index
    of the first position differs between systems.
    """
    width = table.shape[1]
    found = {}
    for in_halves in (False, True):
        if in_halves:
            sines, cosines = np.split(table, 2, axis=1)
        else:
            sines, cosines = table[:, ::2], table[:, 1::2]
        # The fastest pair turns by 1 from each position to the next.
        offset = round(float(np.arctan2(sines[0, 0], cosines[0, 0])) % (2 * np.pi))
        for wavelength in (1e4, max_wavelength(width)):
            rates = wavelength ** (-np.arange(0, width, 2) / width)
            angles = (offset + np.arange(len(table)))[:, None] * rates
            error = np.abs([np.sin(angles) - sines, np.cos(angles) - cosines]).max()
            found[Sines(wavelength, offset, in_halves)] = error
    best = min(found, key=found.get)
    return best if found[best] < TOLERANCE else None
