"""Reorders other systems' vocabularies for SentencePiece and our ids.

Our ids 0 to 3 are padding, EOS, unknown and BOS. Other systems have other ids,
or lack some. So the rows of a matrix are reordered, and the SentencePiece model
gets the same ids. A piece that its language never uses is marked as unused.
"""

import dataclasses
import pathlib

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from command_line.errors import UserError, first_line
from keras_transformer.special_ids import UNKNOWN_ID
from train.data.given_tokenizer import PIECE, SPECIAL, UNKNOWN_PENALTY, serialize

OTHER_BOS = "[<s>]"  # A `<s>` with which no target begins.
ZERO_ROW = -1  # Instead of an index: a row of zeros.
# Logit of a piece that is never generated; its probability is 0 in float32.
NEVER = -100.0


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The ids of one matrix."""

    pieces: list[str]  # In our order.
    rows: np.ndarray  # Their row of each piece, or `ZERO_ROW`.
    can_be_generated: np.ndarray  # Whether a translation may contain it.

    def __len__(self) -> int:
        return len(self.pieces)


def make_vocabulary(
    table: dict[str, int], specials: dict[int, int], used: list[str]
) -> Vocabulary:
    """Reorders a vocabulary for our ids.

    Args:
        table: Their id of each piece.
        specials: Their ids of padding, EOS, unknown and BOS; a missing one gets
            a zero row.
        used: Pieces that their tokenizers return. Those that the table lacks
            get the row of the unknown piece.
    """
    special_rows = set(specials.values())
    if len(special_rows) < len(specials):
        raise UserError(
            "a vocabulary must have an id of its own for end, unknown and "
            f"begin. Received: {sorted(specials.values())}"
        )
    names = [name for name, _ in SPECIAL.values()]
    others = {p: i for p, i in table.items() if i not in special_rows}
    if clash := others.keys() & names:
        raise UserError(
            "a vocabulary may not have another meaning for "
            f"{', '.join(sorted(names))}. Received: {', '.join(sorted(clash))}"
        )
    others = sorted(others, key=others.get)
    unknown = [p for p in dict.fromkeys(used) if p not in table and p not in names]
    rows = [specials.get(id_, ZERO_ROW) for id_ in SPECIAL]
    rows += [table[piece] for piece in others]
    can_be_generated = np.array(rows) != ZERO_ROW
    can_be_generated = np.pad(can_be_generated, (0, len(unknown)))
    rows += [specials[UNKNOWN_ID]] * len(unknown)
    return Vocabulary(names + others + unknown, np.array(rows), can_be_generated)


def make_vocabularies(
    protos: list[ModelProto],
    tables: list[dict[str, int]],
    specials: list[dict[int, int]],
    shares: bool,
    has_codes: bool = True,
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Reorders both vocabularies, and makes SentencePiece models with our ids.

    The arguments are those of `make_vocabulary` and `replace_ids` for each side.
    """
    used = [pieces_of(proto) for proto in protos]
    if shares:
        used = 2 * [used[0] + used[1]]
    sources, targets = map(make_vocabulary, tables, specials, used)
    tokenizers = [
        replace_ids(proto, ours.pieces, has_codes)
        for proto, ours in zip(protos, (sources, targets), strict=True)
    ]
    return sources, targets, *tokenizers


def read_proto(path: pathlib.Path) -> ModelProto:
    try:
        proto = ModelProto.FromString(path.read_bytes())
        if not proto.pieces:
            raise DecodeError("no pieces")
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except DecodeError as error:
        raise UserError(
            f"{path} must be a SentencePiece model. Received: {first_line(error)}"
        ) from None
    return proto


def read_protos(paths: list[pathlib.Path]) -> list[ModelProto]:
    """Reads the models of `--vocabulary`: those of sources and of targets."""
    if len(paths) > 2:
        raise UserError(
            "--vocabulary must be one file, or those of sources and targets. "
            f"Received: {len(paths)}"
        )
    protos = [read_proto(path) for path in paths]
    return [protos[0], protos[-1]]


def pieces_of(proto: ModelProto) -> list[str]:
    """Returns the pieces of a model, without control symbols."""
    return [
        piece.piece
        for piece in proto.pieces
        if piece.type not in (PIECE.CONTROL, PIECE.UNKNOWN, PIECE.UNUSED)
    ]


def is_language_code(piece: str) -> bool:
    """Returns whether a piece is a code such as `>>fra<<`."""
    return piece[:2] == ">>" and piece[-2:] == "<<"


def replace_ids(
    proto: ModelProto,
    pieces: list[str],
    has_codes: bool = False,
    types: dict[str, int] | None = None,
) -> bytes:
    """Returns a model that splits text the same way, into our ids.

    With `has_codes` language codes are one piece before a blank or the end.
    `types` are those of pieces that the model lacks.
    """
    known = {piece.piece: piece for piece in proto.pieces}
    types = types or {}
    lowest = min(piece.score for piece in proto.pieces)
    changed = ModelProto()
    changed.CopyFrom(proto)
    del changed.pieces[:]
    for id_, name in enumerate(pieces):
        piece = changed.pieces.add(piece=name, score=0.0)
        if id_ in SPECIAL:
            piece.type = SPECIAL[id_][1]
        elif has_codes and is_language_code(name):
            # With the blank that the model puts before text. Its score is
            # higher than that of any split into several pieces.
            piece.piece, piece.type = f"▁{name}", PIECE.NORMAL
        elif name in known:
            piece.CopyFrom(known[name])
        elif name in types:
            piece.type = types[name]
        elif len(name) == 1:
            # Their tokenizer looks up characters that its model does not know.
            piece.score, piece.type = lowest - UNKNOWN_PENALTY, PIECE.NORMAL
        else:
            piece.type = PIECE.UNUSED
    return serialize(changed)


def check_ids(table: dict, size: int, where: pathlib.Path) -> dict[str, int]:
    """Returns a table of pieces, if each has an id below `size` of its own."""
    ids = list(table.values())
    good = all(type(id_) is int and 0 <= id_ < size for id_ in ids)
    if not good or len(set(ids)) < len(ids):
        raise UserError(
            f"{where} must give each piece an id below {size} of its own. "
            f"Received: {len(ids)} pieces with other ids, or with the same"
        )
    return table
