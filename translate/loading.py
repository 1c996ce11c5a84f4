"""Loads the runtime of an export, of any format, or of a server."""

import dataclasses
import pathlib

from command_line.errors import UserError, refuse_damage
from command_line.options import mutually_exclusive, option, part
from documents.glossary import GlossaryFile, parse_glossary_option, read_glossary
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model: an export or a server; exactly one of them."""

    export_dir: pathlib.Path | None = option(None, **EXPORT_DIR)
    server: str | None = option(
        None, "a running TF Serving, asked by gRPC without TLS", metavar="HOST:PORT"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GlossaryMatchOptions:
    """How the terms of glossaries match."""

    match_case: bool = option(
        False,
        "terms match in their own case only, and target terms keep theirs; else one "
        "in lower case gets a capital where it begins a sentence",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageOptions:
    """Codes of the languages, for a model that has several."""

    source_language: str = option(
        "",
        "code of the texts' language, for a model that has several, and for the "
        "splitting of documents into sentences",
        metavar="CODE",
    )
    target_language: str = option(
        "",
        "code of the translations' language, for a model that has several",
        metavar="CODE",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslatorOptions(BatchOptions, GlossaryMatchOptions, LanguageOptions):
    """The model, its languages and client, the batch size and a glossary."""

    glossary: GlossaryFile | None = option(
        None,
        "terms that translations must have: a term, a tab and its target term a line; "
        "needs an export with the signature `align`. A line may end in a tab and a "
        "pair of codes; SOURCE:TARGET=FILE leaves out those of other pairs",
        kind=parse_glossary_option,
        metavar="FILE",
    )
    model: ModelOptions = mutually_exclusive()
    client: ClientOptions = part("with --server")


def load(options: TranslatorOptions) -> Runtime:
    """Returns the runtime that the options name, with languages and glossary."""
    glossary = options.glossary and read_glossary(options.glossary, options.match_case)
    if options.model.server:
        runtime = connect(options.model.server, options.client)
        if options.source_language or options.target_language:
            runtime.find_language_inputs()
    else:
        runtime = load_export(options.model.export_dir)
    runtime = choose_languages(runtime, options)
    return runtime if glossary is None else runtime.with_glossary(glossary)


def choose_languages(runtime: Runtime, options: LanguageOptions) -> Runtime:
    """Returns the runtime for the languages of the options.

    Raises:
        UserError: If the model lacks them, or is of one pair.
    """
    source, target = options.source_language, options.target_language
    view = runtime.for_languages(source, target)
    if target and view is runtime:
        raise UserError(
            "--target-language must be left out for a model of one pair. "
            f"Received: {target}"
        )
    view.language = source or view.language
    return view


def load_export(export_dir: pathlib.Path) -> Runtime:
    """Loads the newest version of an export.

    Raises:
        UserError: If it does not exist or is damaged, or if what it needs is
            not installed.
    """
    folder = find_version(export_dir, *RUNTIMES)
    make = next(RUNTIMES[file] for file in RUNTIMES if (folder / file).exists())
    with refuse_damage(folder, "; `python -m export.check` says more"):
        return make(folder)
