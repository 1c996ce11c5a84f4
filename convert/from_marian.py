"""Reads models of Marian, such as those of Firefox and OPUS-MT.

Either a SentencePiece model has the ids of the matrix, or a YAML file has them
by piece, as in OPUS-MT's downloads.
"""

import pathlib

import numpy as np
import yaml

from command_line.errors import UserError, describe_error
from convert.binary_files import open_marian
from convert.marian_config import (
    read_architecture,
    read_configuration,
    read_search_options,
)
from convert.opus_package import find_model_files, unpack
from convert.run_folder_writer import Converted, read_licenses
from convert.tensor_files import Tensors
from convert.vocabularies import Vocabulary, check_ids, make_vocabularies, read_protos
from convert.weight_mapping import make_model
from keras_transformer.special_ids import EOS_ID, UNKNOWN_ID
from train.data.given_tokenizer import PIECE

SEQUENCE_LENGTH = 512
# The matrix of the logits, where it is not that of the embeddings: `(D, V)`,
# or, in newer models, `(V, D)`.
OUTPUTS = ("decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt")
# Their names of the parts of a path; see `weight_mapping`.
NAMES = {
    **dict.fromkeys(("attention", "self_attention"), "self_"),
    **{"memory_attention": "context_", "feed_forward": "ffn_", "recurrence": "rnn_"},
    "attention_residual": "self_Wo_ln_",
    "memory_attention_residual": "context_Wo_ln_",
    "feed_forward_residual": "ffn_ffn_ln_",
    **{"query": "q", "key": "k", "value": "v", "output": "o"},
    **{"expand": "1", "contract": "2", "forget": "f", "update": ""},
    **{"normalization": "", "gamma": "scale", "beta": "bias"},
    **{"kernel": "W", "bias": "b"},
}
# Much faster than the loader in Python. Its values are strings: `no` is a
# piece, and no Boolean.
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def tensor_name_of(path: tuple[str, ...], mixer: str) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    stack, layer, part, name, end = path
    part = NAMES.get(part) or {"attention": "self_Wo_ln_", "ssru": "rnn_ffn_ln_"}[mixer]
    number = int(layer.removeprefix("layer_")) + 1
    return f"{stack}_l{number}_{part}{NAMES[end]}{NAMES[name]}"


def read(
    model_path: pathlib.Path, vocabulary_paths: list[pathlib.Path] | None
) -> Converted:
    """Reads a file and its vocabularies, or a download, which has its own."""
    with unpack(model_path) as path:
        if path.is_dir() != (vocabulary_paths is None):
            raise UserError(
                "--vocabulary must be given for a file of Marian, and not for a "
                "download. Received: "
                f"{'neither' if vocabulary_paths is None else 'both'}"
            )
        if path.is_dir():
            return read_files(*find_model_files(path))
        return read_files(path, vocabulary_paths, None)


def read_files(
    model_path: pathlib.Path,
    vocabulary_paths: list[pathlib.Path],
    table_paths: list[pathlib.Path] | None,
) -> Converted:
    """Reads a model; its arguments are those of `read_vocabularies`."""
    tensors, text = open_marian(model_path)
    is_tied = not any(name in tensors for name in OUTPUTS)
    architecture = read_architecture(
        read_configuration(text, model_path), tied_output=is_tied
    )
    names = {"source": "encoder_Wemb", "target": "decoder_Wemb"}
    if "Wemb" in tensors:
        names = dict.fromkeys(names, "Wemb")
    width = architecture.hidden_dim
    for name in names.values():
        tensors.check(name, (*tensors.shapes.get(name, ())[:1], width))
    sources, targets, *tokenizers = read_vocabularies(
        vocabulary_paths, table_paths, tensors, [*names.values()]
    )
    targets.can_be_generated[UNKNOWN_ID] = False  # Marian never does.
    size = tensors.shapes[names["target"]][0]

    def take_table(which: str) -> np.ndarray:
        if which == "bias":
            return tensors.take("decoder_ff_logit_out_b", (1, size))
        if which != "output":
            return tensors.take(names[which])
        if OUTPUTS[0] in tensors:
            return tensors.take(OUTPUTS[0], (width, size)).T
        return tensors.take(OUTPUTS[1], (size, width))

    def take_weight(path: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        name = tensor_name_of(path, architecture.decoder_mixer)
        # Marian stores a vector as a matrix of one row.
        stored = shape if len(shape) == 2 else (1, *shape)
        return tensors.take(name, stored).reshape(shape)

    # Scales of activations, for products of bytes.
    tensors.ignore(*(n for n in tensors.shapes if n.endswith("QuantMultA")))
    model = make_model(
        architecture,
        tensors,
        (sources, targets),
        shares="Wemb" in tensors,
        sequence_length=SEQUENCE_LENGTH,
        take_table=take_table,
        take_weight=take_weight,
    )
    decoding = read_search_options(model_path)
    return Converted(model, *tokenizers, decoding, read_licenses(model_path.parent))


def read_vocabularies(
    paths: list[pathlib.Path],
    table_paths: list[pathlib.Path] | None,
    tensors: Tensors,
    names: list[str],
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Reads the vocabularies of sources and targets, and their tokenizers.

    Without YAML files the ids are those of the SentencePiece models. A piece
    that a YAML file lacks is unknown.
    """
    protos = read_protos(paths)
    if table_paths is None:
        tables = [{p.piece: i for i, p in enumerate(proto.pieces)} for proto in protos]
    else:
        found = {path: read_table(path) for path in dict.fromkeys(table_paths)}
        tables = [found[path] for path in table_paths]
    if names[0] == names[1] and tables[0] != tables[1]:
        raise UserError(
            f"{tensors.path} has one matrix for both sides, so there must be one "
            "vocabulary. Received: two that differ"
        )
    for table, name, where in zip(
        tables, names, table_paths or ["--vocabulary"] * 2, strict=True
    ):
        size, rows = max(table.values(), default=-1) + 1, tensors.shapes[name][0]
        check_ids(table, size, where)
        if size != rows:
            raise UserError(
                f"{where} must be that of the model, whose {name} has {rows:,} "
                f"rows. Received: one of {size:,} pieces"
            )
        if not {"</s>", "<unk>"} <= table.keys():
            raise UserError(f"{where} must hold the pieces </s> and <unk>")
    if table_paths is None:
        for proto, table in zip(protos, tables, strict=True):
            for piece in proto.pieces:  # Marian generates no such piece.
                if piece.piece in ("<pad>", "<s>") and piece.type == PIECE.CONTROL:
                    del table[piece.piece]
    specials = [{EOS_ID: t["</s>"], UNKNOWN_ID: t["<unk>"]} for t in tables]
    return make_vocabularies(
        *(protos, tables, specials),
        shares=tables[0] == tables[1],
        has_codes=table_paths is not None,
    )


def read_table(path: pathlib.Path) -> dict[str, int]:
    """Reads the id of each piece, from YAML."""
    try:
        found = yaml.load(path.read_text("utf-8"), LOADER)
        return {piece: int(id_) for piece, id_ in found.items()}
    except Exception as error:  # YAML's own, and those of another content.
        raise UserError(
            f"{path} must be a YAML mapping from pieces to ids. "
            f"Received: {describe_error(error)}"
        ) from None
