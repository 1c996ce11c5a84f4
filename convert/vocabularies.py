"""Reorders other systems' vocabularies for SentencePiece and our ids.

Our ids 0 to 3 are padding, EOS, unknown and BOS. Other systems have other ids,
or lack some. So the rows of a matrix are reordered, and the SentencePiece model
gets the same ids. A piece that its language never uses is marked as unused.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Iterable

import numpy as np
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError, first_line
from keras_transformer.tokenizer import UNKNOWN_ID
from train.data.tokenizer_file import PIECE, SPECIAL, UNKNOWN_PENALTY, serialize

ZERO_ROW = -1  # Instead of an index: a row of zeros.
# Logit of a piece that is never generated; its probability is 0 in float32.
NEVER = -100.0


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The ids of one matrix.

    Attributes:
        pieces: Strings, in our order.
        rows: Int array, the index of the row of each piece in their matrix, or
            `ZERO_ROW`.
        can_be_generated: Bool array, whether a translation may contain it.
    """

    pieces: list[str]
    rows: np.ndarray
    can_be_generated: np.ndarray

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
    others = sorted(
        (id_, piece) for piece, id_ in table.items() if id_ not in special_rows
    )
    unknown = [piece for piece in dict.fromkeys(used) if piece not in table]
    taken = {name for name, _ in SPECIAL.values()}
    unknown = [piece for piece in unknown if piece not in taken]
    clash = taken.intersection(piece for _, piece in others)
    if clash:
        raise UserError(
            "a vocabulary may not have another meaning for "
            f"{', '.join(sorted(taken))}. Received: {', '.join(sorted(clash))}"
        )
    pieces = [name for name, _ in SPECIAL.values()]
    pieces += [piece for _, piece in others] + unknown
    rows = [specials.get(id_, ZERO_ROW) for id_ in SPECIAL]
    rows += [id_ for id_, _ in others]
    rows += [specials[UNKNOWN_ID]] * len(unknown)
    can_be_generated = np.array(rows) != ZERO_ROW
    can_be_generated[len(rows) - len(unknown) :] = False
    return Vocabulary(pieces, np.array(rows), can_be_generated)


def read_proto(path: pathlib.Path) -> sentencepiece_model_pb2.ModelProto:
    """Reads a SentencePiece model.

    Raises:
        UserError: If the file is not a SentencePiece model.
    """
    proto = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except DecodeError as error:
        raise UserError(
            f"{path} must be a SentencePiece model. Received: {first_line(error)}"
        ) from None
    if not proto.pieces:
        raise UserError(f"{path} must be a SentencePiece model. Received: no pieces")
    return proto


def pieces_of(proto: sentencepiece_model_pb2.ModelProto) -> list[str]:
    """Returns the pieces of a model, without control symbols."""
    return [
        piece.piece
        for piece in proto.pieces
        if piece.type not in (PIECE.CONTROL, PIECE.UNKNOWN, PIECE.UNUSED)
    ]


def read_protos(paths: list[pathlib.Path]) -> list:
    """Reads the SentencePiece models of `--vocabulary`.

    Args:
        paths: One for both sides, or those of sources and targets.

    Returns:
        The models of sources and of targets.

    Raises:
        UserError: If there are more, or as `read_proto`.
    """
    if len(paths) > 2:
        raise UserError(
            "--vocabulary must be one file, or those of sources and targets. "
            f"Received: {len(paths)}"
        )
    protos = [read_proto(path) for path in paths]
    return [protos[0], protos[-1]]


def find_language_codes(pieces: list[str]) -> tuple[str, ...]:
    """Returns the pieces that are language codes, such as `>>fra<<`."""
    return tuple(filter(is_language_code, pieces))


def is_language_code(piece: str) -> bool:
    return piece[:2] == ">>" and piece[-2:] == "<<"


def make_tokenizers(
    protos: Iterable[sentencepiece_model_pb2.ModelProto],
    vocabularies: Iterable[Vocabulary],
) -> list[bytes]:
    """Returns `replace_ids` of each side, with its language codes."""
    return [
        replace_ids(proto, ours, find_language_codes(ours.pieces))
        for proto, ours in zip(protos, vocabularies, strict=True)
    ]


def replace_ids(
    proto: sentencepiece_model_pb2.ModelProto,
    vocabulary: Vocabulary,
    codes: tuple[str, ...] = (),
) -> bytes:
    """Returns a model that splits text the same way, into our ids.

    Args:
        proto: The model.
        vocabulary: Our vocabulary, which has all its pieces.
        codes: Language codes such as `>>fra<<`, which are one piece before a
            blank or the end.
    """
    known = {piece.piece: piece for piece in proto.pieces}
    lowest = min(piece.score for piece in proto.pieces)
    changed = sentencepiece_model_pb2.ModelProto()
    changed.CopyFrom(proto)
    del changed.pieces[:]
    for id_, name in enumerate(vocabulary.pieces):
        piece = changed.pieces.add(piece=name, score=0.0)
        if id_ in SPECIAL:
            piece.type = SPECIAL[id_][1]
        elif name in codes:
            # With the blank that the model puts before text. Its score is
            # higher than that of any split into several pieces.
            piece.piece, piece.type = f"▁{name}", PIECE.NORMAL
        elif name in known:
            piece.CopyFrom(known[name])
        elif len(name) == 1:
            # Their tokenizer looks up characters that its model does not know.
            piece.score, piece.type = lowest - UNKNOWN_PENALTY, PIECE.NORMAL
        else:
            piece.type = PIECE.UNUSED
    return serialize(changed)


def check_ids(table: dict, size: int, where: pathlib.Path) -> dict[str, int]:
    """Returns a table of pieces, if its ids are those of a matrix.

    Raises:
        UserError: If they are not ints in `[0, size)`, each once.
    """
    ids = list(table.values())
    good = all(type(id_) is int and 0 <= id_ < size for id_ in ids)
    if not good or len(set(ids)) < len(ids):
        counts = collections.Counter(map(str, ids)).most_common(1)
        raise UserError(
            f"{where} must give each piece an id below {size} of its own. "
            f"Received: {len(ids)} pieces, {counts[0] if counts else 'none'}"
        )
    return table
