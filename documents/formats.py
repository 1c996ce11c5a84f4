"""Formats of documents behind one API: sentences out, translations in."""

import collections
import pathlib
from collections.abc import Callable, Generator

from documents.character_encoding import decode, encode
from documents.docx_document import DocxDocument
from documents.markup.markup_tokens import Span, copy_with_edits
from documents.markup.tagged_sentences import find_middle_blank
from documents.markup.translate_markup import (
    Steps,
    TranslatedDocument,
    TranslationRequest,
    markup_steps,
)
from documents.subtitles import Subtitles

# A text of so few characters is not split: it is hardly too long for a model,
# whose translation was cut since it did not end.
MAX_WHOLE = 100


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


def text_steps(text: str, split: Callable) -> Steps:
    """Translates plain text as `markup_steps` does documents with tags."""
    (spans,) = split([text])
    found = yield from translate_whole([text[start:end] for start, end in spans])
    edits = [(*span, new) for span, (new, _) in zip(spans, found, strict=True)]
    counts = collections.Counter(
        sentences=len(found), truncated=sum(was_cut for _, was_cut in found)
    )
    return TranslatedDocument(copy_with_edits(text, edits), counts)


def translate_whole(
    texts: list[str],
) -> Generator[TranslationRequest, list, list[tuple[str, bool]]]:
    """Translates sentences; one that the model cuts is split in two.

    Returns the translation of each, and whether it was cut all the same.
    """
    if not texts:
        return []
    found = list((yield TranslationRequest(texts)))
    halves = {
        i: split_at_middle(texts[i])
        for i, (_, was_cut) in enumerate(found)
        if was_cut and len(texts[i]) > MAX_WHOLE
    }
    parts = [part for first, _, last in halves.values() for part in (first, last)]
    again = iter((yield from translate_whole(parts)))
    for i, (_, gap, _) in halves.items():
        (first, was_cut), (last, was_cut_too) = next(again), next(again)
        found[i] = f"{first}{gap}{last}", was_cut or was_cut_too
    return found


def split_at_middle(text: str) -> tuple[str, str, str]:
    """Returns the halves of a text that is too long, and what is between them."""
    blank = find_middle_blank(text)
    if blank is None:
        middle = len(text) // 2
        return text[:middle], "", text[middle:]
    return text[:blank], " ", text[blank + 1 :]
