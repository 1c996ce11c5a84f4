"""Reads a SentencePiece model from elsewhere, and gives it our ids.

Our ids 0 to 3 are padding, EOS, unknown and BOS. Other systems have other ids,
or lack some. A model splits text by the scores of its pieces, not by their ids,
so it splits text the same way after its pieces are reordered.
"""

import pathlib

import sentencepiece
from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError, first_line
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID

PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece
TRAINER = sentencepiece_model_pb2.TrainerSpec
SPECIAL = {
    PADDING_ID: ("<pad>", PIECE.CONTROL),
    EOS_ID: ("</s>", PIECE.CONTROL),
    UNKNOWN_ID: ("<unk>", PIECE.UNKNOWN),
    BOS_ID: ("<s>", PIECE.CONTROL),
}
KINDS = (TRAINER.BPE, TRAINER.UNIGRAM)
UNKNOWN_PENALTY = 10.0  # SentencePiece's, of characters that are no piece.


def read_tokenizer(path: pathlib.Path) -> bytes:
    """Returns the SentencePiece model of a file, with our special ids.

    Other pieces keep their order; those of padding, EOS, unknown and BOS move
    to ids 0 to 3, and missing ones are added.

    Raises:
        UserError: If the file is missing, is not a SentencePiece model of type
            bpe or unigram, or gives `<pad>`, `</s>`, `<unk>` or `<s>` another
            meaning.
    """
    try:
        content = path.read_bytes()
        proto = sentencepiece_model_pb2.ModelProto.FromString(content)
        model = sentencepiece.SentencePieceProcessor(model_proto=content)
    except OSError as error:
        raise UserError(f"no such file: {path} ({error.strerror})") from None
    except (DecodeError, RuntimeError) as error:
        raise refusal(path, first_line(error)) from None
    if not proto.pieces:
        raise refusal(path, "no pieces")
    if proto.trainer_spec.model_type not in KINDS:
        kind = TRAINER.ModelType.Name(proto.trainer_spec.model_type)
        raise refusal(path, f"one of type {kind.lower()}")
    old = [model.pad_id(), model.eos_id(), model.unk_id(), model.bos_id()]
    names = [name for name, _ in SPECIAL.values()]
    if [piece.piece for piece in proto.pieces[: len(SPECIAL)]] == names and (
        old == list(SPECIAL)
    ):
        return content
    others = [p for i, p in enumerate(proto.pieces) if i not in old]
    clash = [piece.piece for piece in others if piece.piece in names]
    if clash:
        raise refusal(path, f"one with another meaning of {', '.join(sorted(clash))}")
    changed = sentencepiece_model_pb2.ModelProto()
    changed.CopyFrom(proto)
    del changed.pieces[:]
    for name, type_ in SPECIAL.values():
        changed.pieces.add(piece=name, score=0.0, type=type_)
    changed.pieces.extend(others)
    return serialize(changed)


def refusal(path: pathlib.Path, received: str) -> UserError:
    return UserError(
        f"--tokenizer {path} must be a SentencePiece model of type bpe or "
        f"unigram. Received: {received}"
    )


def serialize(proto: sentencepiece_model_pb2.ModelProto) -> bytes:
    """Returns a model that begins with `SPECIAL` as bytes; its settings say so."""
    trainer = proto.trainer_spec
    trainer.vocab_size = len(proto.pieces)
    trainer.pad_id, trainer.eos_id = PADDING_ID, EOS_ID
    trainer.unk_id, trainer.bos_id = UNKNOWN_ID, BOS_ID
    (trainer.pad_piece, trainer.eos_piece, trainer.unk_piece, trainer.bos_piece) = (
        name for name, _ in SPECIAL.values()
    )
    return proto.SerializeToString(deterministic=True)
