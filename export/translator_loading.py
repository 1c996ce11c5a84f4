"""Loads a translator: the newest version of an export, or a client."""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np

from command_line.options import mutually_exclusive
from command_line.options import option
from command_line.options import part
from export.bundle import model_loading
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.versions import EXPORT_DIR
from export.bundle.versions import find_version
from export.client import ClientOptions
from export.client import connect
from export.ctranslate2 import model_directory
from export.line_batching import BatchOptions

DOCUMENT = "translate_document"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model: an export or a server; exactly one of them."""

    export_dir: pathlib.Path | None = option(None, **EXPORT_DIR)
    server: str | None = option(
        None,
        "a running TF Serving, or https://HOST[:PORT][/PREFIX]",
        metavar="HOST:PORT",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslatorOptions(BatchOptions):
    """The model, its client and the batch size."""

    model: ModelOptions = mutually_exclusive()
    client: ClientOptions = part("with --server")


def load(options: TranslatorOptions) -> Callable:
    """Returns a function that translates a batch."""
    if options.model.server:
        return connect(options.model.server, options.client)
    return load_export(options.model.export_dir)


def load_export(
    export_dir: pathlib.Path, version: int | None = None
) -> Callable:
    """Returns a function that translates a batch with a version of an export.

    Raises:
        UserError: If the version does not exist or is damaged.
    """
    folder = find_export(export_dir, version)
    if (folder / model_directory.MODEL_FILE).exists():
        return model_directory.load_translate(export_dir, version)
    return model_loading.load_translate(export_dir, version=version)


def find_export(
    export_dir: pathlib.Path, version: int | None = None
) -> pathlib.Path:
    """Returns the folder of a version, by default of the newest."""
    formats = SAVED_MODEL, model_directory.MODEL_FILE
    return find_version(export_dir, *formats, version=version)


def load_documents(options: TranslatorOptions) -> Callable:
    """Returns a function that translates a list of documents."""
    if options.model.server:
        client = connect(options.model.server, options.client)
        return lambda texts: client.ask(
            DOCUMENT, {"text": np.array(texts, object)}
        )
    return model_loading.load_translate(options.model.export_dir, DOCUMENT)
