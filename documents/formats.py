"""Formats of documents behind one API: sentences out, translations in."""

import pathlib
from collections.abc import Callable

from documents.character_encoding import decode, encode
from documents.docx_document import DocxDocument
from documents.markup.markup_tokens import Span
from documents.markup.translate_markup import Steps, markup_steps
from documents.plain_text import text_steps
from documents.subtitles import Subtitles


class TextDocument:
    """A document that is translated as a whole, in its own encoding.

    Documents of other formats have the same attributes and the same method.

    Attributes:
        format: A format of `markup_steps`; `None` for plain text.
        plain: String, what limits count and a language is detected from.
        text: The text that is translated.
    """

    def __init__(self, content: bytes, format: str | None):
        self.text, self._encoding = decode(content, format)
        self.plain, self.format = self.text, format

    def fill(self, translation: str) -> bytes:
        """Returns the document with the translation of its text."""
        return encode(translation, self._encoding, self.format)


Document = TextDocument | Subtitles | DocxDocument
# The formats by the end of a file's name.
FORMAT_OF_SUFFIX = {
    **{".txt": "text", ".html": "html", ".htm": "html", ".xml": "xml"},
    **{".md": "markdown", ".srt": "srt", ".vtt": "vtt", ".docx": "docx"},
}


def find_format(path: pathlib.PurePath | None) -> str | None:
    """Returns the format that a file's suffix names, before any `.gz`."""
    name = path.name.lower().removesuffix(".gz") if path else ""
    return FORMAT_OF_SUFFIX.get(pathlib.PurePath(name).suffix)


def read_document(
    content: bytes, format: str, max_docx_tags: int | None = None
) -> Document:
    """Reads a document of a format, a value of `FORMAT_OF_SUFFIX`.

    A .docx file, whose size says little about them, has at most `max_docx_tags`.

    Raises:
        ValueError: If it cannot be read.
    """
    if format == "docx":
        return DocxDocument(content, max_docx_tags)
    if format in ("srt", "vtt"):
        return Subtitles(content, format)
    return TextDocument(content, None if format == "text" else format)


def translation_steps(
    document: Document,
    split: Callable[[list[str]], list[list[Span]]],
    knows_placeholders: bool = False,
) -> Steps:
    """Translates a document as `markup_steps` does; its content is bytes."""
    if document.format is None:
        found = yield from text_steps(document.text, split)
    else:
        found = yield from markup_steps(
            document.text, document.format, split, knows_placeholders
        )
    return found._replace(content=document.fill(found.content))
