"""Translates documents as bytes, for `translate --format`."""

import pathlib
import sys
from collections.abc import Callable

from command_line.errors import InvalidDocumentError, UserError
from documents.character_encoding import decode, encode
from documents.markup.translate_markup import describe_counts, translate_markup
from translate.runtime.version_loading import find_export, read_language
from translate.sentence_translator import Translator, make_translator


def load_translator(translate: Callable, export_dir: pathlib.Path | None) -> Translator:
    """Makes the `Translator` of an export or a server.

    Args:
        translate: A `Client`, or the loaded export.
        export_dir: Folder of the export, if there is no client.

    Raises:
        UserError: If the model cannot align.
    """
    if export_dir is None:
        return make_translator(
            translate,
            lambda source, target: translate.ask(
                "align", {"source": source, "target": target}
            ),
            "",
        )
    align = translate.version.signatures.get("align")
    if align is None:
        raise UserError(
            "--format needs an export with the signature align; export the run "
            "anew with `--signatures all`, or with --format litert. "
            f"Received: {export_dir} without it"
        )
    language = read_language(find_export(export_dir))
    return make_translator(
        translate, lambda source, target: align(source=source, target=target), language
    )


def translate_document(
    translator: Translator, data: bytes, format: str, with_attributes: bool = True
) -> bytes:
    """Translates a document with tags, and prints warnings.

    Raises:
        InvalidDocumentError: If it cannot be read.
    """
    try:
        text, encoding = decode(data, format)
        found = translate_markup(text, format, translator, with_attributes)
        written = encode(found.text, encoding, format)
    except UserError:  # The error of a server.
        raise
    except ValueError as error:
        message = str(error).replace("`text`", "the document")
        raise InvalidDocumentError(message) from None
    for note in describe_counts(found.counts, translator.knows_placeholders):
        print(note, file=sys.stderr)
    return written
