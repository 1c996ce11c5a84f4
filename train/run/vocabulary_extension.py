"""Adds subwords to the vocabulary of a finished run (--extend-vocabulary)."""

import dataclasses
import hashlib
import pathlib

import numpy as np
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError
from command_line.text_files import read_lines
from keras_transformer import Transformer
from train.data.tokenizer_file import PIECE
from train.data.vocabulary import check_pieces, invalid_line_error
from train.run.fine_tuning import FinishedRun

OPTION = "--extend-vocabulary"


def extend_vocabulary(start: FinishedRun, path: pathlib.Path) -> FinishedRun:
    """Returns a run whose vocabulary also has the subwords of a file.

    The new subwords follow all others, whose ids and weights stay; text that
    contains a new subword is split at it. Its embedding and its bias are the
    means of all others. So at first it is about as probable as any other token,
    while a random embedding might give the highest logit.
    """
    pieces = list(read_lines(path))
    check_pieces(pieces, OPTION, path)
    model = start.transformer
    sizes = (
        model.source_vocabulary_size or model.vocabulary_size,
        model.vocabulary_size,
    )
    protos = tuple(
        proto if proto is None else with_pieces(proto, pieces, path, size)
        for proto, size in zip(start.protos, sizes, strict=True)
    )
    transformer = with_rows(model, len(pieces))
    size = transformer.vocabulary_size
    digest = hashlib.sha256("\n".join(pieces).encode())
    return dataclasses.replace(
        start,
        arguments={**start.arguments, "vocabulary_size": size},
        protos=protos,
        transformer=transformer,
        # Means may differ in the last bits between machines.
        digests={**start.digests, "pieces": digest.hexdigest()},
    )


def with_pieces(
    proto: bytes, pieces: list[str], path: pathlib.Path, size: int
) -> bytes:
    """Returns a SentencePiece model of `size` pieces with more."""
    model = sentencepiece_model_pb2.ModelProto.FromString(proto)
    if len(model.pieces) != size:
        raise UserError(
            f"{OPTION} needs a tokenizer with a subword for each id of the "
            f"model. Received: {len(model.pieces)} subwords and {size} ids"
        )
    known = {piece.piece for piece in model.pieces}
    for number, piece in enumerate(pieces, 1):
        if piece in known:
            raise invalid_line_error(
                OPTION, path, number, "no subword that is there", piece
            )
        model.pieces.add(piece=piece, score=0.0, type=PIECE.USER_DEFINED)
    model.trainer_spec.vocab_size = len(model.pieces)
    return model.SerializeToString(deterministic=True)


def with_rows(transformer: Transformer, count: int) -> Transformer:
    """Returns a copy of a model with more ids, on either side."""
    config = transformer.get_config()
    config["vocabulary_size"] += count
    if config["source_vocabulary_size"] is not None:
        config["source_vocabulary_size"] += count
    with tf.device("CPU:0"):  # As `load_finished`.
        extended = Transformer.from_config(config)
        extended.build()
    for old, new in zip(transformer.weights, extended.weights, strict=True):
        rows = np.array(old)
        if rows.shape != new.shape:
            mean = rows.mean(axis=0, keepdims=True, dtype=np.float64)
            more = np.repeat(mean.astype(rows.dtype), count, axis=0)
            rows = np.concatenate([rows, more])
        new.assign(rows)
    return extended
