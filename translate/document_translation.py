"""Translates documents as bytes, for `python -m translate`."""

import pathlib
import sys
from collections.abc import Iterator

from command_line.errors import InvalidDocumentError, UserError
from documents.formats import read_document, translation_steps
from documents.markup.translate_markup import (
    SentenceTranslator,
    describe_counts,
    run_steps,
)
from translate.runtime.bounded_batches import (
    MAX_ALIGNED_SQUARES,
    MAX_SQUARES,
    in_batches,
)
from translate.runtime.runtime import MARKUP, Runtime
from translate.segmentation import find_sentences


def make_sentence_translator(runtime: Runtime) -> SentenceTranslator:
    """Returns the functions by which a runtime translates and aligns sentences."""
    can_align = MARKUP in runtime.features

    def align(pairs):
        return in_batches(pairs, MAX_ALIGNED_SQUARES, runtime.align)

    return SentenceTranslator(
        lambda texts: find_sentences(texts, runtime.language),
        lambda texts: in_batches(texts, MAX_SQUARES, runtime.translate),
        align if can_align else None,
        can_align and runtime.knows_placeholders,
    )


def translate_document(
    translator: SentenceTranslator, data: bytes, format: str, name: object
) -> bytes:
    """Translates a document, and prints warnings; errors contain its `name`.

    Raises:
        InvalidDocumentError: If it cannot be read.
        UserError: If it has tags, and the model cannot align.
    """
    try:
        document = read_document(data, format)
        if document.format and not translator.align:
            raise UserError(
                f"the format {format} needs an export with the signature align for a "
                f"document with tags, such as {name}; export the run anew, "
                "without --signatures or with --format litert"
            )
        steps = translation_steps(
            document, translator.split, translator.knows_placeholders
        )
        found = run_steps(steps, translator)
    except UserError:  # The error of a server.
        raise
    except ValueError as error:
        message = str(error).replace("`text`", "the document")
        raise InvalidDocumentError(f"{name}: {message}") from None
    for note in describe_counts(found.counts):
        print(note, file=sys.stderr)
    return found.content


def pair_files(
    folder: pathlib.Path, output: pathlib.Path | None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yields the files of a folder and its subfolders, each with its output file.

    Hidden files are skipped. Output names lose the suffix `.gz`.

    Raises:
        UserError: If `output` is not a folder, or lies within `folder`, or if
            two files have the same output.
    """
    if output is None or output.is_file():
        raise UserError(
            "--output must be a folder where --input is one. "
            f"Received: --output {output}"
        )
    if output.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            "--output must be outside of --input. "
            f"Received: --input {folder}, --output {output}"
        )
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(p.startswith(".") for p in name.parts):
            target = output / str(name).removesuffix(".gz")
            if target in found:
                raise UserError(
                    "files in --input must have different names without .gz. "
                    f"Received: {found[target]}, {path}"
                )
            found[target] = path
    for target, path in found.items():
        yield path, target
