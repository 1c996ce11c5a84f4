"""Loads the run that a new one starts from, maybe with a larger vocabulary."""

import dataclasses
import hashlib
import pathlib

import keras
import numpy as np
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError, refuse_damage
from command_line.options import flag
from command_line.recorded_search_options import check_decoding
from command_line.text_files import read_lines
from keras_transformer import Architecture, Preset, Transformer
from keras_transformer.tokenizer import read_protos
from train.data.given_tokenizer import PIECE
from train.data.vocabulary import check_pieces, invalid_line_error
from train.run.run_description import RunDescription

OPTION = "--extend-vocabulary"
SHAPE = tuple(
    field.name
    for field in dataclasses.fields(Architecture)
    if not field.name.endswith("dropout")
)


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """A finished run, from which a new one starts."""

    run_dir: pathlib.Path
    arguments: dict
    preset: Preset  # With the numbers that were replaced.
    # SentencePiece models of sources and of targets; the second is `None` if both
    # sides share one.
    protos: tuple[bytes, bytes | None]
    transformer: Transformer
    digests: dict[str, str]  # SHA-256 of weights and tokenizers.
    decoding: dict  # Default options of an export's search, if the run has any.
    languages: dict  # The tags of several languages, if the model has any.

    def check_shape(
        self, preset: Preset, vocabulary_size: int | None, max_length: int | None
    ) -> None:
        """Refuses a model of another shape, with the options that differ."""
        numbers, finished = map(shape_of, (preset, self.preset))
        pairs = {name: (numbers[name], finished[name]) for name in SHAPE}
        sizes = {"vocabulary_size": vocabulary_size}
        if finished["positions"] == "learned":
            sizes["max_length"] = max_length
        for name, asked in sizes.items():
            if asked is not None:
                pairs[name] = (asked, self.arguments[name])
        differences = [
            f"{flag(name)} {asked}, which is {known} there"
            for name, (asked, known) in pairs.items()
            if asked != known
        ]
        if differences:
            raise UserError(
                "--init-from takes the shape of the model from "
                f"{self.run_dir}. Received: {', '.join(differences)}"
            )


def shape_of(preset: Preset) -> dict:
    """Returns the numbers of a preset, with its defaults filled in."""
    layers = preset.architecture.num_decoder_layers
    return {**preset.hyperparameters(), "decoder_layers": layers}


def load_initial_run(
    run_dir: pathlib.Path | None, pieces: pathlib.Path | None
) -> FinishedRun | None:
    """Reads the run of --init-from, with the subwords of --extend-vocabulary."""
    if run_dir is None:
        if pieces is not None:
            raise UserError(
                f"{OPTION} needs --init-from. Received: {OPTION} {pieces} alone"
            )
        return None
    start = load_finished(run_dir)
    return start if pieces is None else extend_vocabulary(start, pieces)


def load_finished(run_dir: pathlib.Path) -> FinishedRun:
    description = RunDescription.load_run(run_dir, "--init-from")
    paths = [run_dir / "model.keras", run_dir / "tokenizer.model"]
    for path in paths:
        if not path.exists():
            raise UserError(
                "--init-from must be the folder of a finished run. "
                f"Received: {run_dir}, which has no {path.name}"
            )
    # Only its values are needed, and a GPU's memory is for the training.
    with refuse_damage(paths[0]), tf.device("CPU:0"):
        transformer = keras.saving.load_model(paths[0], compile=False)
    protos = read_protos(run_dir)
    return FinishedRun(
        run_dir,
        description.arguments,
        description.preset,
        protos,
        transformer,
        digests_of(transformer, protos),
        check_decoding(description.decoding, run_dir / "arguments.json"),
        description.languages,
    )


def digests_of(
    transformer: Transformer, protos: tuple[bytes, bytes | None]
) -> dict[str, str]:
    """Returns the SHA-256 of weights and tokenizers, as hexadecimal."""
    weights = hashlib.sha256()
    for weight in transformer.get_weights():
        weights.update(weight.tobytes())
    names = ("tokenizer", "target_tokenizer")
    return {
        "weights": weights.hexdigest(),
        **{
            name: hashlib.sha256(proto).hexdigest()
            for name, proto in zip(names, protos, strict=True)
            if proto is not None
        },
    }


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
