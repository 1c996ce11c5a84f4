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
from convert.opus_download import find_download
from convert.run_folder_writer import Converted, make_model
from convert.tensor_files import Tensors
from convert.vocabularies import (
    Vocabulary,
    check_ids,
    make_vocabularies,
    make_vocabulary,
    read_protos,
    replace_ids,
)
from convert.weight_mapping import copy_bias, copy_layers, copy_table
from keras_transformer.masks import EOS_ID
from keras_transformer.tokenizer import UNKNOWN_ID

SEQUENCE_LENGTH = 512
BIAS = "decoder_ff_logit_out_b"
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
    """Reads a model, its vocabularies and its search options.

    Args:
        model_path: A file of Marian, or the folder of an OPUS-MT download.
        vocabulary_paths: SentencePiece models, one for both sides or one
            each; none for a folder.

    Raises:
        UserError: If a file is damaged, or the architecture not supported.
    """
    is_download = model_path.is_dir()
    if is_download != (vocabulary_paths is None):
        raise UserError(
            "--vocabulary must be given for a file of Marian, and not for a "
            "download. Received: "
            f"{'neither' if vocabulary_paths is None else 'both'}"
        )
    tables = None
    if is_download:
        model_path, vocabulary_paths, tables = find_download(model_path)
    tensors, text = open_marian(model_path)
    configuration = read_configuration(text, model_path)
    is_tied = not any(name in tensors for name in OUTPUTS)
    architecture = read_architecture(configuration, tied_output=is_tied)
    names = ("encoder_Wemb", "decoder_Wemb")
    if "Wemb" in tensors:
        names = ("Wemb", "Wemb")
    for name in names:
        rows = tensors.shapes.get(name, (0,))[0]
        tensors.check(name, (rows, architecture.hidden_dim))
    protos = read_protos(vocabulary_paths)
    if tables is None:
        vocabularies = arrange_sentencepiece(protos, tensors, names)
    else:
        vocabularies = read_tables(tables, protos, tensors, names)
    sources, targets, *tokenizers = vocabularies
    targets.can_be_generated[UNKNOWN_ID] = False  # Marian never does.
    model = make_model(
        architecture,
        tensors,
        len(targets),
        SEQUENCE_LENGTH,
        None if "Wemb" in tensors else len(sources),
    )

    def take(path: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        name = tensor_name_of(path, architecture.decoder_mixer)
        # Marian stores a vector as a matrix of one row.
        stored = shape if len(shape) == 2 else (1, *shape)
        return tensors.take(name, stored).reshape(shape)

    copy_tables(model, tensors, names, (sources, targets))
    copy_layers(model, take)
    # Scales of activations, for products of bytes.
    tensors.ignore(*(n for n in tensors.shapes if n.endswith("QuantMultA")))
    tensors.check_all_taken()
    return Converted(model, *tokenizers, read_search_options(model_path))


def copy_tables(
    model,
    tensors: Tensors,
    names: tuple[str, str],
    vocabularies: tuple[Vocabulary, Vocabulary],
) -> None:
    """Sets the embedding matrices, and the matrix and bias of the logits."""
    sources, targets = vocabularies
    size, width = tensors.shapes[names[1]]
    copy_table(model.embedding, tensors.take(names[1]), targets.rows)
    copy_bias(model.embedding_of_logits, tensors.take(BIAS, (1, size))[0], targets)
    if model.source_embedding is not None:
        copy_table(model.source_embedding, tensors.take(names[0]), sources.rows)
    if model.output_embedding is not None:
        if OUTPUTS[0] in tensors:
            table = tensors.take(OUTPUTS[0], (width, size)).T
        else:
            table = tensors.take(OUTPUTS[1], (size, width))
        copy_table(model.output_embedding, table, targets.rows)


def arrange_sentencepiece(
    protos: list, tensors: Tensors, names: tuple[str, str]
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Arranges vocabularies of SentencePiece, whose ids are those of the matrices.

    Args:
        protos: The models of sources and of targets.
        tensors: The tensors of the model.
        names: The names of their matrices.
    """
    sources, targets = map(arrange_vocabulary, protos)
    if names[0] == names[1] and sources.pieces != targets.pieces:
        raise UserError(
            f"{tensors.path} has one matrix for both sides; --vocabulary must "
            "be one file. Received: two that differ"
        )
    for proto, name in zip(protos, names, strict=True):
        check_rows(len(proto.pieces), "--vocabulary", tensors, name)
    tokenizers = map(replace_ids, protos, (sources.pieces, targets.pieces))
    return sources, targets, *tokenizers


def arrange_vocabulary(proto) -> Vocabulary:
    """Reorders a SentencePiece vocabulary for our ids."""
    table = {piece.piece: id_ for id_, piece in enumerate(proto.pieces)}
    trainer = proto.trainer_spec
    specials = {EOS_ID: trainer.eos_id, UNKNOWN_ID: trainer.unk_id}
    if not all(0 <= id_ < len(proto.pieces) for id_ in specials.values()):
        raise UserError(
            "--vocabulary must have ids of the end and of what is unknown. "
            f"Received: {trainer.eos_id} and {trainer.unk_id}"
        )
    # Their vocabulary has no other piece of these names.
    for name, id_ in {"<pad>": trainer.pad_id, "<s>": trainer.bos_id}.items():
        if id_ >= 0 and table.get(name) == id_:
            del table[name]
    return make_vocabulary(table, specials, [])


def read_tables(
    paths: list[pathlib.Path], protos: list, tensors: Tensors, names: tuple[str, str]
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Like `arrange_sentencepiece`, with the ids of YAML files.

    A piece of a SentencePiece model that its YAML file lacks is unknown.
    """
    if names[0] == names[1] and paths[0] != paths[1]:
        raise UserError(
            f"{tensors.path} has one matrix for both sides, so there must be "
            "one *.vocab.yml. Received: two"
        )
    tables = {path: read_table(path) for path in dict.fromkeys(paths)}
    for path, name in zip(paths, names, strict=True):
        size = max(tables[path].values()) + 1
        check_ids(tables[path], size, path)
        check_rows(size, str(path), tensors, name)
    tables = [tables[path] for path in paths]
    specials = [{EOS_ID: t["</s>"], UNKNOWN_ID: t["<unk>"]} for t in tables]
    return make_vocabularies(protos, tables, specials, paths[0] == paths[1])


def read_table(path: pathlib.Path) -> dict[str, int]:
    """Reads the id of each piece, from YAML."""
    try:
        found = yaml.load(path.read_text("utf-8"), LOADER)
        table = {piece: int(id_) for piece, id_ in found.items()}
    except Exception as error:  # YAML's own, and those of another content.
        raise UserError(
            f"{path} must be a YAML mapping from pieces to ids. "
            f"Received: {describe_error(error)}"
        ) from None
    if not {"</s>", "<unk>"} <= table.keys():
        raise UserError(f"{path} must hold the pieces </s> and <unk>")
    return table


def check_rows(size: int, which: str, tensors: Tensors, name: str) -> None:
    """Refuses a vocabulary whose size differs from a matrix's rows."""
    rows = tensors.shapes[name][0]
    if size != rows:
        raise UserError(
            f"{which} must be that of the model, whose {name} has "
            f"{rows:,} rows. Received: one of {size:,} pieces"
        )
