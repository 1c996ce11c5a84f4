"""Writes a version: a SavedModel and what whoever serves it needs beside it."""

import dataclasses
import importlib.metadata
import json
import pathlib
import zipfile

import tensorflow as tf

import keras_transformer
from export.bundle import layout
from export.bundle.graph import read_meta_graph
from export.bundle.graph import served_signatures
from export.bundle.samples import write_samples
from export.bundle.saved_model import read_arguments
from export.bundle.server_files import write_server_files
from export.bundle.versions import new_version
from export.bundle.warmup import LENGTH
from export.bundle.warmup import choose_words
from export.bundle.warmup import make_inputs
from export.bundle.warmup import make_requests
from export.bundle.warmup import make_sentences
from export.bundle.warmup import write_warmup
from export.model.translator import Translator

PACKAGES = ("keras", "tensorflow", "tensorflow-text")
SAMPLE_SIZE = 2


def write_version(
    translator: Translator,
    run_dir: pathlib.Path,
    export_dir: pathlib.Path,
    model_name: str,
    version: int | None = None,
) -> pathlib.Path:
    """Writes a version of an export, and the server's files if there are none.

    Args:
        translator: What to export.
        run_dir: Folder of the run that it comes from.
        export_dir: Folder of the versions.
        model_name: The name that the server gives the model.
        version: Int, the folder's name; `None` takes the next number.

    Returns:
        The folder of the version.

    Raises:
        UserError: If the version is there already, or if another export writes
            into the same folder.
    """
    with new_version(export_dir, layout.SAVED_MODEL, version) as (folder, part):
        tf.saved_model.save(
            translator, str(part), signatures=translator.signatures
        )
        write_extras(translator, part, model_name)
        description = describe(translator, run_dir, model_name, part)
        text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
        (part / layout.BUNDLE).write_text(text, encoding="utf-8")
        write_server_files(export_dir, model_name)
    return folder


def write_extras(
    translator: Translator, folder: pathlib.Path, model_name: str
) -> None:
    """Writes the warm-up requests and the samples of a SavedModel."""
    signatures = served_signatures(read_meta_graph(folder))
    (folder / layout.SAMPLES).mkdir(parents=True)
    requests = make_requests(signatures, translator, model_name)
    write_warmup(folder / layout.WARMUP, requests)
    sentences = make_sentences(
        choose_words(translator.tokenizer), LENGTH, SAMPLE_SIZE
    )
    inputs = {
        name: make_inputs(
            signatures[name],
            sentences,
            translator.tokenizer,
            translator.settings,
        )
        for name in ("serving_default", "translate_options")
    }
    write_samples(
        folder / layout.SAMPLES, model_name, translator.signatures, inputs
    )


def describe(
    translator: Translator,
    run_dir: pathlib.Path,
    model_name: str,
    folder: pathlib.Path,
) -> dict:
    """Returns what `bundle.json` says of a version, its own file aside."""
    return {
        "model_name": model_name,
        "packages": {
            "keras_transformer": keras_transformer.__version__,
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
        "settings": dataclasses.asdict(translator.settings),
        "precision": translator.precision,
        "run": read_arguments(run_dir),
        "averaged": averaged_checkpoints(run_dir / "model.keras"),
        "files": layout.list_files(folder),
    }


def averaged_checkpoints(path: pathlib.Path) -> dict | None:
    """Returns what `train` noted in a `.keras` file, if it did."""
    with zipfile.ZipFile(path) as file:
        return json.loads(file.comment) if file.comment else None
