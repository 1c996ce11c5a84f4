"""Reads the vocabularies of Marian's models.

Either a SentencePiece model has the ids of the matrix, or a YAML file has them
by piece, as in OPUS-MT's downloads.
"""

import pathlib

import yaml

from command_line.errors import UserError, first_line
from convert.opus_download import Download
from convert.tensor_files import Tensors
from convert.vocabularies import (
    Vocabulary,
    check_ids,
    make_tokenizers,
    make_vocabulary,
    pieces_of,
    read_proto,
    read_protos,
    replace_ids,
)
from keras_transformer.masks import EOS_ID
from keras_transformer.tokenizer import UNKNOWN_ID

# Much faster than the loader in Python. Its values are strings: `no` is a
# piece, and no Boolean.
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def embedding_names(tensors: Tensors) -> tuple[str, str]:
    """Returns the names of the embedding matrices of sources and of targets."""
    if "Wemb" in tensors:
        return "Wemb", "Wemb"
    return "encoder_Wemb", "decoder_Wemb"


def read_sentencepiece(
    paths: list[pathlib.Path], tensors: Tensors, width: int
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Reads SentencePiece models, whose ids are those of the matrices.

    Args:
        paths: One for both sides, or one each.
        tensors: The tensors of the model.
        width: Int, features of an embedding.

    Returns:
        The vocabularies of sources and of targets, and SentencePiece models
        with our ids.

    Raises:
        UserError: If one is not a SentencePiece model, or not the model's.
    """
    protos = read_protos(paths)
    sources, targets = map(arrange_vocabulary, protos)
    names = embedding_names(tensors)
    if names[0] == names[1] and sources.pieces != targets.pieces:
        raise UserError(
            f"{tensors.path} has one matrix for both sides; --vocabulary must "
            f"be one file. Received: {len(paths)} that differ"
        )
    for proto, name in zip(protos, names, strict=True):
        check_rows(len(proto.pieces), "--vocabulary", tensors, name, width)
    tokenizers = (replace_ids(protos[0], sources), replace_ids(protos[1], targets))
    return sources, targets, *tokenizers


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
    return make_marian_vocabulary(table, specials, [])


def make_marian_vocabulary(table, specials, used) -> Vocabulary:
    """Makes a vocabulary; Marian never generates the unknown piece."""
    vocabulary = make_vocabulary(table, specials, used)
    vocabulary.can_be_generated[UNKNOWN_ID] = False
    return vocabulary


def read_download_vocabularies(
    files: Download, tensors: Tensors, width: int
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Like `read_sentencepiece`, of a download of OPUS-MT.

    A piece of a SentencePiece model that its YAML file lacks is unknown.

    Raises:
        UserError: If a file is damaged, or not the model's.
    """
    protos = [read_proto(path) for path in files.protos]
    names = embedding_names(tensors)
    if names[0] == names[1] and files.tables[0] != files.tables[1]:
        raise UserError(
            f"{tensors.path} has one matrix for both sides, so there must be "
            "one *.vocab.yml. Received: two"
        )
    tables = [
        read_table(path, tensors, name, width)
        for path, name in zip(files.tables, names, strict=True)
    ]
    used = [pieces_of(proto) for proto in protos]
    if files.tables[0] == files.tables[1]:
        used = 2 * [used[0] + used[1]]
    vocabularies = [
        arrange_table(*each) for each in zip(tables, used, files.tables, strict=True)
    ]
    return *vocabularies, *make_tokenizers(protos, vocabularies)


def read_table(
    path: pathlib.Path, tensors: Tensors, name: str, width: int
) -> dict[str, int]:
    """Reads the id of each piece, from YAML."""
    try:
        found = yaml.load(path.read_text("utf-8"), LOADER)
        table = {piece: int(id_) for piece, id_ in found.items()}
    except (
        *(yaml.YAMLError, RecursionError),
        *(ValueError, TypeError, AttributeError),
    ) as error:
        raise UserError(
            f"{path} must be a YAML mapping from pieces to ids. "
            f"Received: {first_line(error)}"
        ) from None
    size = max(table.values(), default=-1) + 1
    check_ids(table, size, path)
    check_rows(size, str(path), tensors, name, width)
    return table


def arrange_table(
    table: dict[str, int], used: list[str], path: pathlib.Path
) -> Vocabulary:
    """Reorders a table of pieces for our ids."""
    if not {"</s>", "<unk>"} <= table.keys():
        raise UserError(f"{path} must hold the pieces </s> and <unk>")
    specials = {EOS_ID: table["</s>"], UNKNOWN_ID: table["<unk>"]}
    return make_marian_vocabulary(table, specials, used)


def check_rows(size: int, which: str, tensors: Tensors, name: str, width: int) -> None:
    """Refuses a vocabulary whose size differs from a matrix's rows."""
    rows = tensors.shapes.get(name, (0,))[0]
    tensors.check(name, (rows, width))
    if size != rows:
        raise UserError(
            f"{which} must be that of the model, whose {name} has "
            f"{rows:,} rows. Received: one of {size:,} pieces"
        )
