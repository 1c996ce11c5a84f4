"""Loads the runtime of an export, of any format, or of a server."""

import dataclasses
import pathlib

from command_line.errors import UserError, refuse_damage
from command_line.options import mutually_exclusive, option, part
from export.bundle.file_layout import CTRANSLATE2_MODEL, LITERT_STEP, SAVED_MODEL
from export.bundle.versions import EXPORT_DIR, find_version
from translate.line_batching import BatchOptions
from translate.runtime.ctranslate2 import CTranslate2Runtime
from translate.runtime.litert import LiteRTRuntime
from translate.runtime.runtime import Runtime
from translate.runtime.saved_model import SavedModelRuntime
from translate.runtime.tf_serving import ClientOptions, connect

# By the file that identifies a format.
RUNTIMES = {
    SAVED_MODEL: SavedModelRuntime,
    CTRANSLATE2_MODEL: CTranslate2Runtime,
    LITERT_STEP: LiteRTRuntime,
}

SOURCE_LANGUAGE = {
    "help": "code of the texts' language, for a model that has several, and for the "
    "splitting of documents into sentences",
    "metavar": "CODE",
}
TARGET_LANGUAGE = {
    "help": "code of the translations' language, for a model that has several",
    "metavar": "CODE",
}


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
    """The model, its languages, its client and the batch size."""

    model: ModelOptions = mutually_exclusive()
    source_language: str = option("", **SOURCE_LANGUAGE)
    target_language: str = option("", **TARGET_LANGUAGE)
    client: ClientOptions = part("with --server")


def load(options: TranslatorOptions) -> Runtime:
    """Returns the runtime that the options name."""
    codes = options.source_language, options.target_language
    if options.model.server:
        runtime = connect(options.model.server, options.client)
        if any(codes):
            runtime.find_language_inputs()
    else:
        runtime = load_export(options.model.export_dir)
    return choose_languages(runtime, *codes)


def choose_languages(runtime: Runtime, source: str, target: str) -> Runtime:
    """Returns the runtime for the languages of the options.

    Raises:
        UserError: If the model lacks them, or is of one pair.
    """
    view = runtime.for_languages(source, target)
    if target and view is runtime:
        raise UserError(
            "--target-language must be left out for a model of one pair. "
            f"Received: {target}"
        )
    view.language = source or view.language
    return view


def load_export(export_dir: pathlib.Path, version: int | None = None) -> Runtime:
    """Loads a version of an export, by default the newest.

    Raises:
        UserError: If it does not exist or is damaged, or if what it needs is
            not installed.
    """
    folder = find_export(export_dir, version)
    make = next(RUNTIMES[file] for file in RUNTIMES if (folder / file).exists())
    with refuse_damage(folder, "; `python -m export.check` says more"):
        return make(folder)


def find_export(export_dir: pathlib.Path, version: int | None = None) -> pathlib.Path:
    """Returns the folder of a version, by default of the newest."""
    return find_version(export_dir, *RUNTIMES, version=version)
