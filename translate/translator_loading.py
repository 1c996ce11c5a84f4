"""Loads a translator: the newest version of an export, or a client."""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from command_line.options import mutually_exclusive, option, part
from export.bundle.versions import EXPORT_DIR
from translate.line_batching import BatchOptions
from translate.runtime.tf_serving import Client, ClientOptions, connect
from translate.runtime.version_loading import load_signature, load_translate

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
    return load_translate(options.model.export_dir)


def load_ask(
    options: TranslatorOptions, signature: str
) -> tuple[Callable, Client | None]:
    """Loads a signature.

    Returns:
        Function from its name and a dict of arrays to the dict of its outputs,
        and the client of the server, if the model is on one.
    """
    if options.model.server:
        client = connect(options.model.server, options.client)
        return client.ask, client
    called = load_signature(options.model.export_dir, signature)

    def ask(_, inputs):
        return called(**{k: tf.constant(value) for k, value in inputs.items()})

    return ask, None


def load_documents(options: TranslatorOptions) -> Callable:
    """Returns a function that translates a list of documents."""
    ask, _ = load_ask(options, DOCUMENT)
    return lambda texts: ask(DOCUMENT, {"text": np.array(texts, object)})
