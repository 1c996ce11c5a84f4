"""Loads the runtime of an export, of any format, or of a server."""

import dataclasses
import pathlib

from command_line.errors import refuse_damage
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


def load(options: TranslatorOptions) -> Runtime:
    """Returns the runtime that the options name."""
    if options.model.server:
        return connect(options.model.server, options.client)
    return load_export(options.model.export_dir)


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
