"""Formats of documents behind one API: sentences out, translations in.

`read_document` reads a document; `translation_steps` yields its sentences and
receives their translations, so that any model can translate it.
"""

import collections
import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

from documents.character_encoding import decode, encode
from documents.docx_document import DocxDocument
from documents.markup.translate_markup import Steps, markup_steps
from documents.plain_text import text_steps
from documents.subtitles import Subtitles


class Document(Protocol):
    """A document to translate.

    Attributes:
        format: A format of `markup_steps`; `None` for plain text.
        plain: String, what limits count and a language is detected from.
    """

    format: str | None
    plain: str

    def make_text(self) -> str:
        """Returns the text that is translated."""

    def fill(self, translation: str) -> bytes:
        """Returns the document with the translation of that text."""


class TextDocument:
    """A `Document` that is translated as a whole, in its own encoding."""

    def __init__(self, content: bytes, format: str | None = None):
        self.plain, self._encoding = decode(content, format)
        self.format = format

    def make_text(self) -> str:
        return self.plain

    def fill(self, translation: str) -> bytes:
        return encode(translation, self._encoding, self.format)


READERS = {
    "text": TextDocument,
    "html": functools.partial(TextDocument, format="html"),
    "xml": functools.partial(TextDocument, format="xml"),
    "markdown": functools.partial(TextDocument, format="markdown"),
    "srt": Subtitles,
    "docx": DocxDocument,
}
# The formats by the end of a file's name.
FORMAT_OF_SUFFIX = {
    ".txt": "text",
    ".html": "html",
    ".xml": "xml",
    ".md": "markdown",
    ".srt": "srt",
    ".docx": "docx",
}


class TranslatedDocument(NamedTuple):
    """A translated document; the counts are those of `markup_steps`."""

    content: bytes
    counts: collections.Counter


def read_document(content: bytes, format: str) -> Document:
    """Reads a document of one of `READERS`.

    Raises:
        ValueError: If it cannot be read.
    """
    return READERS[format](content)


def translation_steps(
    document: Document,
    split: Callable[[list[str]], list[list[tuple[int, int]]]],
    knows_placeholders: bool = False,
    with_attributes: bool = True,
) -> Steps:
    """Translates a document as `markup_steps` does; returns `TranslatedDocument`."""
    text = document.make_text()
    if document.format is None:
        found = yield from text_steps(text, split)
    else:
        found = yield from markup_steps(
            text, document.format, split, knows_placeholders, with_attributes
        )
    return TranslatedDocument(document.fill(found.text), found.counts)
