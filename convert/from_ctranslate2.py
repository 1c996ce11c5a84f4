"""Reads directories of CTranslate2's encoder-decoder models.

They hold transposed kernels, one for queries, keys and values, and a table of
position vectors.
"""

import dataclasses
import pathlib

import numpy as np

from command_line.errors import UserError
from convert.binary_files import open_ctranslate2
from convert.checked_options import CheckedOptions, read_json
from convert.ctranslate2_config import (
    EMBEDDINGS,
    is_shared,
    read_architecture,
    read_options,
    read_positions,
)
from convert.run_folder_writer import Converted, read_licenses
from convert.tensor_files import Tensors
from convert.vocabularies import OTHER_BOS, Vocabulary, make_vocabularies, read_protos
from convert.weight_mapping import make_model
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID

SEQUENCE_LENGTH = 512
# CTranslate2's own defaults.
DECODING = {"beam_size": 2, "length_penalty": 1.0, "penalty_offset": 0}
BIAS = "decoder/projection/bias"
# Their names of the parts of a path; see `weight_mapping`.
NAMES = {
    **dict.fromkeys(("attention", "attention_residual"), "self_attention"),
    "self_attention_residual": "self_attention",
    **dict.fromkeys(("memory_attention", "memory_attention_residual"), "attention"),
    **dict.fromkeys(("feed_forward", "feed_forward_residual"), "ffn"),
    "kernel": "weight",
}
# The maps of each kernel, one above the other.
LINEARS = {
    "self_attention": (("query", "key", "value"), ("output",)),
    "attention": (("query",), ("key", "value"), ("output",)),
    "ffn": (("expand",), ("contract",)),
}


def read(folder: pathlib.Path, vocabulary_paths: list[pathlib.Path]) -> Converted:
    tensors, found = open_ctranslate2(folder / "model.bin")
    config = read_config(folder)
    options = read_options(found, tensors.path)
    sines, learned = read_positions(tensors)
    architecture = read_architecture(tensors, options, config.found, sines)
    sources, targets, *tokenizers = read_vocabularies(
        folder,
        vocabulary_paths,
        tensors,
        config,
        begins_with_zero=bool(found.get("decoder/start_from_zero_embedding")),
    )
    shares = sources.pieces == targets.pieces and is_shared(
        tensors, EMBEDDINGS["source"], EMBEDDINGS["target"]
    )
    if not targets.can_be_generated.all():
        architecture = dataclasses.replace(architecture, logits_bias=True)
    size = tensors.shapes[EMBEDDINGS["output"]][0]

    def take_table(which: str) -> np.ndarray:
        if which == "bias":
            return tensors.take(BIAS, (size,)) if BIAS in tensors else np.zeros(size)
        return tensors.take(EMBEDDINGS[which])

    def take_weight(path: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        return take_layer_weight(tensors, path, shape)

    tensors.ignore(*EMBEDDINGS.values())
    model = make_model(
        architecture,
        tensors,
        (sources, targets),
        shares=shares,
        sequence_length=SEQUENCE_LENGTH if learned is None else len(learned),
        take_table=take_table,
        take_weight=take_weight,
        in_halves=sines is not None and sines.in_halves,
    )
    if learned is not None:
        model.position_encoding.embeddings.assign(learned)
    return Converted(model, *tokenizers, DECODING, read_licenses(folder))


def read_config(folder: pathlib.Path) -> CheckedOptions:
    """Reads `config.json`; refuses sources that begin with BOS."""
    path = folder / "config.json"
    config = CheckedOptions(read_json(path), path)
    if config.found.get("add_source_bos"):
        raise config.error("add_source_bos", "false", True)
    if not config.found.get("add_source_eos"):
        print(
            "note: sources end in </s> here, as in models of Marian; a model "
            "whose sources do not, such as OpenNMT-py's, translates worse"
        )
    return config


def take_layer_weight(
    tensors: Tensors, path: tuple[str, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """Returns a weight of a layer."""
    *where, part, name, end = path
    part, end = NAMES.get(part, part), NAMES.get(end, end)
    prefix = "/".join((*where, part))
    if name == "normalization":
        return tensors.take(f"{prefix}/layer_norm/{end}", shape)
    index, maps = next(pair for pair in enumerate(LINEARS[part]) if name in pair[1])
    *inputs, outputs = shape
    joined = tensors.take(
        f"{prefix}/linear_{index}/{end}", (len(maps) * outputs, *inputs)
    )
    return np.split(joined, len(maps))[maps.index(name)].T


def read_vocabularies(
    folder: pathlib.Path,
    paths: list[pathlib.Path],
    tensors: Tensors,
    config: CheckedOptions,
    begins_with_zero: bool,
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Reads the vocabularies of sources and targets, and their tokenizers."""
    protos = read_protos(paths)
    tables = [read_pieces(folder, side, tensors) for side in ("source", "target")]
    shares = tables[0] == tables[1]
    keys = {"eos_token": "</s>", "unk_token": "<unk>"}
    if not begins_with_zero:
        keys["decoder_start_token"] = "<s>"
    specials, starts = [], []
    for table in tables:
        # `choice` refuses a token that the vocabulary lacks.
        eos, unknown, *start = (config.choice(k, table, t) for k, t in keys.items())
        specials.append({EOS_ID: eos, UNKNOWN_ID: unknown})
        if "<pad>" in table:
            specials[-1][PADDING_ID] = table["<pad>"]
        if start == [table.get("<s>")]:
            specials[-1][BOS_ID] = table["<s>"]
        elif "<s>" in table:  # Targets begin with another one.
            table[OTHER_BOS] = table.pop("<s>")
        starts.append(start)
    vocabularies = make_vocabularies(protos, tables, specials, shares)
    for side, start in enumerate(starts):
        if start and BOS_ID not in specials[side]:
            # Not generated: its logit would be that of the other token.
            vocabularies[side].rows[BOS_ID] = start[0]
    return vocabularies


def read_pieces(folder: pathlib.Path, side: str, tensors: Tensors) -> dict[str, int]:
    path = folder / "shared_vocabulary.json"
    if not path.exists():
        path = folder / f"{side}_vocabulary.json"
    pieces = read_json(path, list)
    if not all(isinstance(piece, str) for piece in pieces):
        raise UserError(f"{path} must hold strings")
    if len(set(pieces)) < len(pieces):
        raise UserError(f"{path} must hold each piece once")
    name = EMBEDDINGS[side]
    rows = tensors.shapes.get(name, (0, 0))[0]
    if len(pieces) != rows:
        raise UserError(
            f"{path} must be that of the model, whose {name} has {rows:,} "
            f"rows. Received: {len(pieces):,} pieces"
        )
    return {piece: id_ for id_, piece in enumerate(pieces)}
