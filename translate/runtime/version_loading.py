"""Loads a version of an export, of any format."""

import json
import pathlib
from collections.abc import Callable

import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

from command_line.errors import UserError, refuse_damage
from export.bundle.file_layout import (
    BUNDLE,
    CTRANSLATE2_MODEL,
    LITERT_CONFIG,
    LITERT_STEP,
    SAVED_MODEL,
)
from export.bundle.graph_inspection import read_meta_graph
from export.bundle.model_loading import SIGNATURE
from export.bundle.versions import find_version
from export.ctranslate2.model_directory import CTranslate2Translator
from translate.runtime.litert import LiteRTModel

# By the file that identifies a format. Each returns an object with
# `signatures`: functions from tensors to a dict of tensors, by name.
LOADERS = {
    SAVED_MODEL: lambda folder: tf.saved_model.load(str(folder)),
    CTRANSLATE2_MODEL: CTranslate2Translator,
    LITERT_STEP: LiteRTModel,
}


def find_export(export_dir: pathlib.Path, version: int | None = None) -> pathlib.Path:
    """Returns the folder of a version, by default of the newest.

    Raises:
        UserError: If the version does not exist.
    """
    return find_version(export_dir, *LOADERS, version=version)


def load_version(folder: pathlib.Path):
    """Returns an object with the `signatures` of a version.

    Raises:
        UserError: If it is damaged, or if what it needs is not installed.
    """
    load = next(LOADERS[file] for file in LOADERS if (folder / file).exists())
    with refuse_damage(folder, "; `python -m export.check` says more"):
        return load(folder)


def load_signature(
    export_dir: pathlib.Path, signature: str, version: int | None = None
) -> Callable:
    """Loads a signature of a version of an export, by default of the newest.

    Returns:
        Function from tensors, by keyword, to the dict of outputs; what has a
        default may be left out. Its attribute `version` is the result of
        `load_version`.

    Raises:
        UserError: If the version does not exist, is damaged, or lacks the
            signature.
    """
    folder = find_export(export_dir, version)
    loaded = load_version(folder)
    if signature not in loaded.signatures:
        raise UserError(
            f"the export must have the signature {signature}; `export "
            f"--signatures {signature}` writes it into a SavedModel. "
            f"Received: {folder}"
        )
    called = loaded.signatures[signature]
    defaults = read_defaults(folder).get(signature, {})

    def call(**tensors):
        return called(**{**defaults, **tensors})

    # A signature of a SavedModel does not keep the weights alive.
    call.version = loaded
    return call


def read_defaults(folder: pathlib.Path) -> dict[str, dict[str, tf.Tensor]]:
    """Returns the defaults of the inputs of a SavedModel's signatures.

    Of other formats it returns an empty dict: they fill in their own.
    """
    if not (folder / SAVED_MODEL).exists():
        return {}
    return {
        name: {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in signature.defaults.items()
        }
        for name, signature in read_meta_graph(folder).signature_def.items()
    }


def load_translate(
    export_dir: pathlib.Path, signature: str = SIGNATURE, version: int | None = None
) -> Callable:
    """Like `load_signature`, of one that takes texts.

    Returns:
        Function from a string tensor `(B,)` to the dict of outputs.
    """
    ask = load_signature(export_dir, signature, version)

    def translate(text):
        return ask(text=tf.convert_to_tensor(text, tf.string))

    translate.version = ask.version
    return translate


def read_language(folder: pathlib.Path) -> str:
    """Returns the source language of a version, or `""`.

    Raises:
        UserError: If the file that records it is damaged.
    """
    path = folder / BUNDLE
    if (folder / LITERT_STEP).exists():
        path = folder / LITERT_CONFIG
    with refuse_damage(path):
        content = json.loads(path.read_text("utf-8"))
        return content.get("settings", content).get("source_language", "")
