"""Reads directories of CTranslate2's encoder-decoder models.

They hold transposed kernels, one for queries, keys and values, and a table of
position vectors. Options that are unknown here, and tensors, are refused.
"""

import dataclasses
import pathlib

import numpy as np

from command_line.errors import UserError
from command_line.recorded_search_options import check_decoding
from convert.ctranslate2_attention import Heads, LayerReader, find_value_dim
from convert.ctranslate2_file import CTranslate2File, open_ctranslate2
from convert.ctranslate2_vocabularies import SIDES, read_vocabularies
from convert.marian_config import max_wavelength
from convert.position_tables import Sines, find_sines
from convert.run_folder_writer import Converted, make_model
from convert.tensor_files import Tensors, read_json
from convert.vocabularies import Vocabulary
from convert.weight_mapping import copy_bias, copy_layers, copy_table, to_our_order
from export.bundle.file_layout import CTRANSLATE2_MODEL
from export.ctranslate2.model_directory import SETTINGS_FILE
from keras_transformer import Architecture

ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
SEQUENCE_LENGTH = 512
# CTranslate2's own defaults.
DECODING = {"beam_size": 2, "length_penalty": 1.0, "penalty_offset": 0}
EPSILON = 1e-5
# Options that must be 0 or absent; others mean a computation that is not
# supported.
MUST_BE_ZERO = (
    *("decoder/alibi", "encoder/multi_query_attention"),
    "decoder/final_logit_softcapping",
)
# Options that are read, or have no effect on the translation.
KNOWN = frozenset(
    {
        *("encoder/num_heads", "decoder/num_heads"),
        *("encoder/pre_norm", "decoder/pre_norm"),
        *("encoder/activation", "decoder/activation"),
        *("encoder/scale_embeddings", "decoder/scale_embeddings"),
        "decoder/start_from_zero_embedding",
        # Of several embeddings, and of alignments.
        *("encoder/embeddings_merge", "decoder/alignment_layer"),
        "decoder/alignment_heads",
        # Of ALiBi.
        *("decoder/alibi_use_positive_positions", "decoder/scale_alibi"),
    }
)
EMBEDDINGS = {**SIDES, "output": "decoder/projection/weight"}
POSITIONS = (
    "encoder/position_encodings/encodings",
    "decoder/position_encodings/encodings",
)


def option_error(path: pathlib.Path, name: str, wanted: str, value):
    return UserError(f"{name} of {path} must be {wanted}. Received: {value!r}")


class Options:
    """The options of a file; both stacks must have the same."""

    def __init__(self, file: CTranslate2File):
        self._found, self._path = file.options, file.tensors.path
        for name, value in self._found.items():
            last = name.rsplit("/", 1)[-1]
            if name in MUST_BE_ZERO and value:
                raise option_error(self._path, name, "0", value)
            known = KNOWN | {*MUST_BE_ZERO}
            if name not in known and last not in ("queries_scale", "head_dim"):
                raise option_error(self._path, name, "absent", value)

    def both(self, name: str, default=None):
        """Returns an option of both stacks."""
        one, other = (
            self._found.get(f"{stack}/{name}", default)
            for stack in ("encoder", "decoder")
        )
        if one is None:
            raise option_error(self._path, f"encoder/{name}", "present", one)
        if one != other:
            wanted = f"{one}, as in the encoder"
            raise option_error(self._path, f"decoder/{name}", wanted, other)
        return one

    def of_layers(self, name: str, default):
        """Returns an option that all attentions must have alike."""
        found = {
            value
            for key, value in self._found.items()
            if key.rsplit("/", 1)[-1] == name
        } or {default}
        if len(found) > 1:
            wanted = "the same in all layers"
            raise option_error(self._path, name, wanted, sorted(found))
        return found.pop()


def read(
    folder: pathlib.Path, vocabulary_paths: list[pathlib.Path] | None = None
) -> Converted:
    """Reads a directory of CTranslate2.

    Args:
        folder: The directory.
        vocabulary_paths: SentencePiece models, one for both sides or one
            each; by default those that `export` writes into the directory.

    Raises:
        UserError: If a file is damaged, or the model not supported.
    """
    file = open_ctranslate2(folder / CTRANSLATE2_MODEL)
    config = read_config(folder)
    options = Options(file)
    width = read_width(file.tensors)
    sines, learned = read_positions(file.tensors, width)
    architecture, heads = read_architecture(file, options, config, width, sines)
    shares = is_shared(file, EMBEDDINGS["source"], EMBEDDINGS["target"])
    sources, targets, *protos = read_vocabularies(
        folder,
        vocabulary_paths,
        file.tensors,
        config,
        bool(file.options.get("decoder/start_from_zero_embedding", 0)),
    )
    shares = shares and sources.pieces == targets.pieces
    settings, sequence_length = read_settings(folder, learned)
    if not targets.can_be_generated.all():
        architecture = dataclasses.replace(architecture, logits_bias=True)
    model = make_model(
        architecture,
        file.tensors,
        len(targets),
        sequence_length,
        None if shares else len(sources),
    )
    in_halves = sines is not None and sines.in_halves
    copy_tables(model, file.tensors, sources, targets, in_halves)
    if learned is not None:
        model.position_encoding.embeddings.assign(learned)
    copy_layers(model, LayerReader(file.tensors, heads).read, in_halves)
    copy_final_norms(model, file.tensors, in_halves)
    file.tensors.ignore(*EMBEDDINGS.values(), *POSITIONS)
    file.tensors.check_all_taken()
    return Converted(model, *protos, settings)


def read_config(folder: pathlib.Path) -> dict:
    """Reads `config.json`; refuses sources that begin with BOS."""
    config = read_json(folder / "config.json")
    if config.get("add_source_bos"):
        raise UserError(
            f"add_source_bos of {folder / 'config.json'} must be false. Received: true"
        )
    ours = (folder / SETTINGS_FILE).exists()
    if not ours and not config.get("add_source_eos"):
        print(
            "note: sources end in </s> here, as in models of Marian; a model "
            "whose sources do not, such as OpenNMT-py's, translates worse"
        )
    return config


def read_settings(folder: pathlib.Path, learned) -> tuple[dict, int]:
    """Returns the default search options, and the number of positions."""
    path = folder / SETTINGS_FILE
    settings = read_json(path) if path.exists() else {}
    length = settings.get("max_source_length", SEQUENCE_LENGTH)
    if learned is not None:
        length = len(learned)
    return check_decoding(settings, path) or DECODING, length


def read_width(tensors: Tensors) -> int:
    """Returns the features of a position."""
    name = EMBEDDINGS["target"]
    shape = tensors.shapes.get(name, ())
    if len(shape) != 2 or shape[1] < 4 or shape[1] % 2:
        raise UserError(
            f"{name} of {tensors.path} must have two axes, and an even number "
            f"of features from 4 on. Received: shape {shape}"
        )
    return shape[1]


def read_positions(
    tensors: Tensors, width: int
) -> tuple[Sines | None, np.ndarray | None]:
    """Returns the sines of a model, or else its learned positions."""
    if not any(name in tensors for name in POSITIONS):
        # CTranslate2 computes these.
        return Sines(max_wavelength(width), offset=1, in_halves=True), None
    one, other = (
        tensors.take(name, tensors.shapes.get(name, (0, 0))) for name in POSITIONS
    )
    if not np.array_equal(one, other):
        raise UserError(
            f"{POSITIONS[1]} of {tensors.path} must be that of the encoder. "
            "Received: another table"
        )
    tensors.check(POSITIONS[0], (max(1, *one.shape[:1]), width))
    sines = find_sines(one)
    return sines, one if sines is None else None


def read_architecture(
    file: CTranslate2File,
    options: Options,
    config: dict,
    width: int,
    sines: Sines | None,
) -> tuple[Architecture, Heads]:
    """Reads the hyperparameters from options and shapes."""
    tensors = file.tensors
    activation = options.both("activation", 0)
    if activation not in ACTIVATIONS:
        wanted = f"one of {sorted(ACTIVATIONS)}"
        raise option_error(tensors.path, "activation", wanted, activation)
    counts = [count_layers(tensors, stack) for stack in ("encoder", "decoder")]
    heads = read_heads(tensors, options, width)
    inner = tensors.shapes.get("encoder/layer_0/ffn/linear_0/weight", (0,))[0]
    positions = {"positions": "learned"}
    if sines is not None:
        positions = {
            "max_wavelength": sines.max_wavelength,
            "position_offset": sines.offset,
        }
    return Architecture(
        num_layers=counts[0],
        decoder_layers=counts[1],
        hidden_dim=width,
        intermediate_dim=inner,
        num_heads=heads.count,
        key_dim=heads.key_dim,
        value_dim=heads.value_dim,
        norm="pre" if options.both("pre_norm") else "post",
        use_bias="encoder/layer_0/self_attention/linear_0/bias" in tensors,
        activation=ACTIVATIONS[activation],
        scale_embedding=is_scaled(tensors.path, options, width),
        logits_bias="decoder/projection/bias" in tensors,
        norm_epsilon=config.get("layer_norm_epsilon") or EPSILON,
        tied_output=is_shared(file, EMBEDDINGS["output"], EMBEDDINGS["target"]),
        **positions,
    ), heads


def count_layers(tensors: Tensors, stack: str) -> int:
    count = 0
    while f"{stack}/layer_{count}/ffn/linear_0/weight" in tensors:
        count += 1
    return count


def is_scaled(path: pathlib.Path, options: Options, width: int) -> bool:
    """Returns whether embeddings are multiplied by the root of the width."""
    scale = options.both("scale_embeddings", 1)
    if type(scale) is int:  # A switch.
        return bool(scale)
    if np.isclose(scale, [1.0, width**0.5], rtol=1e-3).any():
        return scale > 1.01
    wanted = f"1 or the root of {width}"
    raise option_error(path, "scale_embeddings", wanted, scale)


def is_shared(file: CTranslate2File, one: str, other: str) -> bool:
    """Returns whether two matrices are the same."""
    tensors = file.tensors
    if file.entries.get(one) == file.entries.get(other):
        return True
    shapes = [tensors.shapes.get(name) for name in (one, other)]
    return shapes[0] == shapes[1] and np.array_equal(
        tensors.take(one, shapes[0]), tensors.take(other, shapes[1])
    )


def read_heads(tensors: Tensors, options: Options, width: int) -> Heads:
    """Finds how many features of the stored heads are not padding."""
    count = options.both("num_heads", 8)
    stored = options.of_layers("head_dim", width // max(1, count))
    scale = options.of_layers("queries_scale", max(1, stored) ** -0.5)
    key_dim = round(scale**-2) if scale > 0 else 0
    if count < 1 or not 1 <= key_dim <= stored:
        raise UserError(
            f"{tensors.path} must have heads whose products are divided by the "
            f"root of their features, at most {stored}. Received: {count} "
            f"heads, queries_scale={scale!r}"
        )
    # Either keys or values have all features.
    value_dim = stored
    if key_dim == stored:
        value_dim = find_value_dim(tensors, count, stored)
    return Heads(count, stored, key_dim, value_dim)


def copy_tables(
    model, tensors: Tensors, sources: Vocabulary, targets: Vocabulary, in_halves: bool
) -> None:
    """Sets the embedding matrices, and the matrix and bias of the logits."""
    for embedding, name, vocabulary in (
        (model.embedding, "target", targets),
        (model.output_embedding, "output", targets),
        (model.source_embedding, "source", sources),
    ):
        if embedding is not None:
            name = EMBEDDINGS[name]
            copy_table(embedding, tensors, name, vocabulary.rows, in_halves)
    if model.embedding_of_logits.bias is not None:
        size = tensors.shapes[EMBEDDINGS["output"]][0]
        bias = np.zeros(size, np.float32)
        if "decoder/projection/bias" in tensors:
            bias = tensors.take("decoder/projection/bias", (size,))
        copy_bias(model.embedding_of_logits, bias, targets)


def copy_final_norms(model, tensors: Tensors, in_halves: bool) -> None:
    """Sets the layer normalization after each stack of a pre-norm model."""
    if model.architecture.norm != "pre":
        return
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for part in ("gamma", "beta"):
            variable = getattr(stack.normalization, part)
            array = tensors.take(f"{name}/layer_norm/{part}", tuple(variable.shape))
            axes = (0,) if in_halves else ()
            variable.assign(to_our_order(array, axes))
