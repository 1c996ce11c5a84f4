"""Writes a version: SavedModel, warm-up requests, samples, description."""

import dataclasses
import importlib.metadata
import pathlib
from collections.abc import Sequence

import tensorflow as tf

import keras_transformer
from command_line.text_files import write_json
from export.bundle import file_layout
from export.bundle.graph_inspection import read_meta_graph, served_signatures
from export.bundle.run_loading import read_arguments, read_notes
from export.bundle.sample_requests import write_samples
from export.bundle.server_config import write_server_files
from export.bundle.versions import new_version
from export.bundle.warmup_requests import (
    choose_sentences,
    make_inputs,
    make_requests,
    write_warmup,
)
from export.model.translator import Translator

PACKAGES = ("keras", "tensorflow", "tensorflow-text", "tensorflow-serving-api")


def write_version(
    translator: Translator,
    run_dirs: Sequence[pathlib.Path],
    export_dir: pathlib.Path,
    model_name: str,
    version: int | None = None,
) -> pathlib.Path:
    """Writes a version of an export, and the server's files if missing.

    `run_dirs` are the runs that trained the models; the first one has the sentences
    of the samples. The version `None` takes the next number.
    """
    notes = read_notes(run_dirs[0])
    samples = notes.get("samples", [])
    with new_version(export_dir, file_layout.SAVED_MODEL, version) as (folder, part):
        tf.saved_model.save(translator, str(part), signatures=translator.signatures)
        write_warmup_and_samples(translator, part, model_name, samples)
        description = {
            "model_name": model_name,
            "packages": {
                "keras_transformer": keras_transformer.__version__,
                **{name: importlib.metadata.version(name) for name in PACKAGES},
            },
            "settings": dataclasses.asdict(translator.settings),
            "precision": translator.precision,
            "languages": translator.languages
            and dataclasses.asdict(translator.languages),
            "runs": [read_arguments(run_dir) for run_dir in run_dirs],
            "averaged": notes.get("checkpoints"),
            # Those scores are of one model.
            "validation": notes.get("validation") if len(run_dirs) == 1 else None,
            "samples": samples,
            "files": file_layout.list_files(part),
        }
        write_json(part / file_layout.BUNDLE, description)
        write_server_files(export_dir, model_name)
    return folder


def write_warmup_and_samples(
    translator: Translator, folder: pathlib.Path, model_name: str, samples: list[dict]
) -> None:
    """Writes the warm-up requests and the samples of a SavedModel."""
    signatures = served_signatures(read_meta_graph(folder))
    (folder / file_layout.SAMPLES).mkdir(parents=True)
    requests = make_requests(signatures, translator, model_name)
    write_warmup(folder / file_layout.WARMUP, requests)
    sentences = choose_sentences(samples, translator.tokenizer)
    inputs = {
        name: make_inputs(signatures[name], sentences, translator)
        for name in ("serving_default", "translate_options")
        if name in signatures
    }
    write_samples(folder / file_layout.SAMPLES, translator.signatures, inputs)
