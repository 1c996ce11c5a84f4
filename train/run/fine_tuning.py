"""Loads the run that a new one starts from."""

import dataclasses
import hashlib
import pathlib

import keras
import tensorflow as tf

from command_line.errors import UserError, refuse_damage
from command_line.options import flag
from command_line.recorded_search_options import check_decoding
from keras_transformer import Architecture, Preset, Transformer
from keras_transformer.tokenizer import read_protos
from train.run.run_description import RunDescription

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
