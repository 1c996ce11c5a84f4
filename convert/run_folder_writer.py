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
from keras_transformer import Preset, Recipe, Transformer
from text_processing.language_tags import LanguageTags
from train.run.run_description import PACKAGES

# Often only the model card, README.md, names the licence.
LICENSES = ("LICENSE*", "LICENCE*", "COPYING*", "README*")


@dataclasses.dataclass(frozen=True)
class Converted:
    model: Transformer
    source_proto: bytes
    target_proto: bytes  # The same if both sides share one.
    decoding: dict  # Default search options of the other system.
    licenses: dict[str, bytes]  # Their contents by name.
    languages: LanguageTags | None = None


def write_run(run_dir: pathlib.Path, converted: Converted, origin: dict) -> None:
    """Writes a complete run folder, or none after an error."""
    check_new(run_dir)
    files = {"tokenizer.model": converted.source_proto, **converted.licenses}
    if converted.target_proto != converted.source_proto:
        files["target_tokenizer.model"] = converted.target_proto
    with new_folder(run_dir) as part:
        save_unzipped_first(converted.model, part / "model.keras")
        for name, content in files.items():
            (part / name).write_bytes(content)
        write_json(part / "arguments.json", describe_run(converted, origin))


def save_unzipped_first(model: keras.Model, path: pathlib.Path) -> None:
    """Saves like `model.save`, but without the whole file in memory."""
    if sys.platform == "linux":  # The C library keeps freed memory.
        ctypes.CDLL(None).malloc_trim(0)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        keras.saving.save_model(model, folder, zipped=False)
        with zipfile.ZipFile(path, "w") as archive:
            for file in pathlib.Path(folder).glob("*.*"):
                archive.write(file, file.name)


def read_licenses(folder: pathlib.Path) -> dict[str, bytes]:
    """Reads a model's licences, unless they may be those of the program."""
    if folder.resolve() == pathlib.Path.cwd():
        return {}
    paths = [path for pattern in LICENSES for path in folder.glob(pattern)]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def check_new(folder: pathlib.Path) -> None:
    """Refuses a folder that is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"--run-dir must be a new folder, or an empty one. Received: {folder}"
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
    languages = converted.languages
    return {
        **({"languages": dataclasses.asdict(languages)} if languages else {}),
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
