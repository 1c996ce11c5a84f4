"""Starts a run from the model of another one (--init-from)."""

import dataclasses
import hashlib
import pathlib

import keras

from command_line.errors import UserError
from command_line.options import flag
from keras_transformer import Preset
from keras_transformer import Transformer
from train.run import run_folder

SHAPE = (
    "num_layers",
    "hidden_dim",
    "intermediate_dim",
    "num_heads",
    "key_dim",
    "value_dim",
    "positions",
    "norm",
)


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """What a run starts from.

    Attributes:
        run_dir: The folder of the finished run.
        arguments: Its arguments.
        preset: Its preset, with the numbers that were replaced.
        model_proto: Bytes, the SentencePiece model.
        transformer: Its `model.keras`.
    """

    run_dir: pathlib.Path
    arguments: dict
    preset: Preset
    model_proto: bytes
    transformer: Transformer

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of weights and tokenizer, as hexadecimal."""
        weights = hashlib.sha256()
        for weight in self.transformer.get_weights():
            weights.update(weight.tobytes())
        tokenizer = hashlib.sha256(self.model_proto)
        return {
            "weights": weights.hexdigest(),
            "tokenizer": tokenizer.hexdigest(),
        }

    def check_shape(
        self,
        preset: Preset,
        vocabulary_size: int | None,
        max_length: int | None,
    ) -> None:
        """Refuses a model of another shape, by the names of what differs.

        Args:
            preset: What the new run asks for.
            vocabulary_size: Int, or `None` where nothing was asked for.
            max_length: The same. It is part of the shape where positions are
                learned.
        """
        numbers, finished = preset.numbers(), self.preset.numbers()
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


def load_finished(run_dir: pathlib.Path) -> FinishedRun:
    """Reads a finished run.

    Raises:
        UserError: If the folder holds none.
    """
    description = run_folder.read(run_dir, "--init-from")
    paths = [run_dir / "model.keras", run_dir / "tokenizer.model"]
    for path in paths:
        if not path.exists():
            raise UserError(
                "--init-from must be the folder of a finished run. "
                f"Received: {run_dir}, which has no {path.name}"
            )
    return FinishedRun(
        run_dir,
        description["arguments"],
        run_folder.read_preset(description),
        paths[1].read_bytes(),
        keras.saving.load_model(paths[0], compile=False),
    )
