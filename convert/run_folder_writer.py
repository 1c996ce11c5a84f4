"""Writes a run folder for a converted model.

`export`, `--init-from` and other commands read it like one that `train` wrote.
"""

import contextlib
import ctypes
import dataclasses
import importlib.metadata
import pathlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator

import keras

from command_line.errors import UserError
from command_line.text_files import write_json
from convert.tensor_files import Tensors
from keras_transformer import Architecture, Preset, Recipe, Transformer
from train.run.run_description import PACKAGES

# Often only the model card, README.md, names the licence.
LICENSES = ("LICENSE*", "LICENCE*", "COPYING*", "README*")


@dataclasses.dataclass(frozen=True)
class Converted:
    """A converted model.

    Attributes:
        model: The `Transformer`, with its weights.
        source_proto: Bytes, the SentencePiece model of sources.
        target_proto: Bytes, that of targets; the same if it is shared.
        decoding: Dict, the default search options of the other system.
    """

    model: Transformer
    source_proto: bytes
    target_proto: bytes
    decoding: dict


def make_model(
    architecture: Architecture,
    tensors: Tensors,
    vocabulary_size: int,
    sequence_length: int,
    source_vocabulary_size: int | None = None,
) -> Transformer:
    """Makes a model, whose weights `copy_table` and `copy_layers` set.

    Raises:
        UserError: If the sizes are invalid, or if the file has fewer weights
            than the model.
    """
    needed = count_weights(architecture)
    if needed > tensors.num_elements:
        raise UserError(
            f"{tensors.path} must hold the model of its configuration, whose "
            f"layers have {needed:,} weights. "
            f"Received: {tensors.num_elements:,}"
        )
    try:
        return Transformer(
            vocabulary_size,
            architecture,
            sequence_length,
            source_vocabulary_size,
            name="transformer",
        )
    except (ValueError, TypeError) as error:
        raise UserError(f"the model cannot be made: {error}") from None


def count_weights(architecture: Architecture) -> int:
    """Returns the number of weights in the matrices of all layers."""
    width = architecture.hidden_dim
    features = architecture.key_dim + architecture.value_dim
    attention = 2 * width * architecture.num_heads * features
    rest = 2 * width * architecture.intermediate_dim
    mixer = 2 * width**2 if architecture.decoder_mixer == "ssru" else attention
    return architecture.num_layers * (
        attention + rest
    ) + architecture.num_decoder_layers * (mixer + attention + rest)


def write_run(
    run_dir: pathlib.Path, converted: Converted, origin: dict, license_dir: pathlib.Path
) -> None:
    """Writes a complete run folder, or none after an error.

    Args:
        run_dir: The folder, which must be new or empty.
        converted: The converted model.
        origin: Where it comes from, for `arguments.json`.
        license_dir: Folder whose licence is copied.
    """
    check_new(run_dir)
    with new_folder(run_dir) as part:
        save_model(converted.model, part / "model.keras")
        (part / "tokenizer.model").write_bytes(converted.source_proto)
        if converted.target_proto != converted.source_proto:
            path = part / "target_tokenizer.model"
            path.write_bytes(converted.target_proto)
        write_json(part / "arguments.json", describe_run(converted, origin))
        copy_licenses(license_dir, part)


def save_model(model: keras.Model, path: pathlib.Path) -> None:
    """Saves like `model.save`, but without the whole file in memory."""
    if sys.platform == "linux":  # The C library keeps freed memory.
        ctypes.CDLL(None).malloc_trim(0)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        keras.saving.save_model(model, folder, zipped=False)
        with zipfile.ZipFile(path, "w") as archive:
            for file in pathlib.Path(folder).glob("*.*"):
                archive.write(file, file.name)


def copy_licenses(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copies a model's licence, unless that may be one of the program."""
    if source.resolve() == pathlib.Path.cwd():
        return
    for pattern in LICENSES:
        for path in source.glob(pattern):
            if path.is_file():
                shutil.copyfile(path, target / path.name)


def check_new(folder: pathlib.Path, option: str = "--run-dir") -> None:
    """Refuses a folder that is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"{option} must be a new folder, or an empty one. Received: {folder}"
        )


@contextlib.contextmanager
def new_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder, which is renamed to `folder` at the end.

    After an error the temporary folder is removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = pathlib.Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        yield part
        part.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def describe_run(converted: Converted, origin: dict) -> dict:
    """Returns the content of `arguments.json`."""
    model = converted.model
    preset = Preset(f"converted from {origin['format']}", model.architecture, Recipe())
    return {
        "arguments": {
            "vocabulary_size": model.vocabulary_size,
            "source_vocabulary_size": model.source_vocabulary_size,
            "max_length": model.sequence_length,
        },
        "preset": {"description": preset.description, **preset.hyperparameters()},
        "corpus": {},
        "init": {},
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "origin": origin,
        "decoding": converted.decoding,
    }
