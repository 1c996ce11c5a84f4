"""Reads models of Marian, such as those of Firefox."""

import pathlib

import numpy as np

from command_line.errors import UserError
from convert.marian_config import find_search_options
from convert.marian_config import read_architecture
from convert.marian_config import read_configuration
from convert.marian_config import read_search_options
from convert.run_folder_writer import Converted
from convert.run_folder_writer import make_model
from convert.tensor_files import Tensors
from convert.tensor_files import open_marian
from convert.vocabularies import UNKNOWN_ID
from convert.vocabularies import Vocabulary
from convert.vocabularies import make_vocabulary
from convert.vocabularies import read_proto
from convert.vocabularies import replace_ids
from convert.weight_mapping import Weight
from convert.weight_mapping import copy_bias
from convert.weight_mapping import copy_layers
from convert.weight_mapping import copy_table
from keras_transformer.masks import EOS_ID

SEQUENCE_LENGTH = 512
PARTS = {
    "self": ("self_", "self_Wo"),
    "memory": ("context_", "context_Wo"),
    "feed_forward": ("ffn_", "ffn_ffn"),
    "recurrence": ("rnn_", "rnn_ffn"),
}
MAPS = {
    **{"query": "q", "key": "k", "value": "v", "output": "o"},
    **{"expand": "1", "contract": "2", "forget": "f", "update": ""},
}


def tensor_name_of(weight: Weight) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    prefix = f"{weight.stack}_l{weight.layer + 1}_"
    maps, norm = PARTS[weight.part]
    what, end = weight.name.split(".")
    if what == "norm":
        end = {"gamma": "scale", "beta": "bias"}[end]
        return f"{prefix}{norm}_ln_{end}"
    letter = {"kernel": "W", "bias": "b"}[end]
    return f"{prefix}{maps}{letter}{MAPS[what]}"


def read(
    model_path: pathlib.Path, vocabulary_paths: list[pathlib.Path]
) -> Converted:
    """Reads a model and its vocabularies, one for both sides or one each.

    Raises:
        UserError: If a file is damaged, or the architecture not supported.
    """
    tensors, text = open_marian(model_path)
    configuration = read_configuration(text, model_path)
    architecture = read_architecture(configuration, model_path)
    decoding = read_search_options(find_search_options(model_path))
    protos = [read_proto(path) for path in vocabulary_paths]
    protos = [protos[0], protos[-1]]
    vocabularies = [arrange_vocabulary(proto) for proto in protos]
    tokenizers = map(replace_ids, protos, vocabularies)
    sources, targets = vocabularies
    shares = "Wemb" in tensors
    if len(vocabulary_paths) > 2:
        raise UserError(
            "--vocabulary must be one file, or those of sources and targets. "
            f"Received: {len(vocabulary_paths)}"
        )
    if shares and sources.pieces != targets.pieces:
        raise UserError(
            f"{model_path} has one matrix for both sides; --vocabulary must "
            f"be one file. Received: {len(vocabulary_paths)} that differ"
        )
    for proto, side in zip(protos, ("encoder", "decoder"), strict=True):
        name = "Wemb" if shares else f"{side}_Wemb"
        check_rows(proto, tensors, name, architecture.hidden_dim)
    model = make_model(
        architecture,
        tensors,
        len(targets),
        SEQUENCE_LENGTH,
        None if shares else len(sources),
    )

    def take(weight: Weight) -> np.ndarray:
        shape = tuple(weight.variable.shape)
        name = tensor_name_of(weight)
        # Marian stores a vector as a matrix of one row.
        stored = shape if len(shape) == 2 else (1, *shape)
        return tensors.take(name, stored).reshape(shape)

    copy_tables(model, tensors, sources, targets, shares)
    copy_layers(model, take)
    # Scales of activations, for products of bytes.
    tensors.ignore(*(n for n in tensors.shapes if n.endswith("QuantMultA")))
    tensors.check_all_taken()
    return Converted(model, *tokenizers, decoding)


def arrange_vocabulary(proto) -> Vocabulary:
    """Reorders a SentencePiece vocabulary for our ids."""
    table = {piece.piece: id_ for id_, piece in enumerate(proto.pieces)}
    trainer = proto.trainer_spec
    specials = {EOS_ID: trainer.eos_id, UNKNOWN_ID: trainer.unk_id}
    for id_ in specials.values():
        if not 0 <= id_ < len(proto.pieces) or trainer.eos_id == trainer.unk_id:
            raise UserError(
                "--vocabulary must have ids of the end and of what is unknown. "
                f"Received: {trainer.eos_id} and {trainer.unk_id}"
            )
    # Their vocabulary has no other piece of these names.
    names = {"<pad>": trainer.pad_id, "<s>": trainer.bos_id}
    for name, id_ in names.items():
        if id_ >= 0 and table.get(name) == id_:
            del table[name]
    return make_vocabulary(table, specials, [])


def check_rows(proto, tensors: Tensors, name: str, width: int) -> None:
    """Refuses a vocabulary whose size differs from a matrix's rows."""
    size = tensors.shapes.get(name, (0,))[0]
    tensors.check(name, (size, width))
    if len(proto.pieces) != size:
        raise UserError(
            f"--vocabulary must be that of the model, whose {name} has "
            f"{size:,} rows. Received: one of {len(proto.pieces):,} pieces"
        )


def copy_tables(
    model,
    tensors: Tensors,
    sources: Vocabulary,
    targets: Vocabulary,
    shares: bool,
) -> None:
    table = "Wemb" if shares else "decoder_Wemb"
    copy_table(model.embedding, tensors, table, targets.rows)
    shape = (1, tensors.shapes[table][0])
    bias = tensors.take("decoder_ff_logit_out_b", shape)[0]
    never = (targets.rows < 0) | ~targets.can_be_generated
    copy_bias(model.embedding, bias, targets.rows, never)
    if not shares:
        copy_table(
            model.source_embedding, tensors, "encoder_Wemb", sources.rows
        )
