"""Translates files: text, HTML, Markdown, SubRip subtitles and Word (.docx)."""

import functools
import re
import textwrap
from typing import Protocol

from documents.docx_document import DocxDocument
from serve.markup_documents import run_in_thread
from serve.schemas import http_error
from serve.translation_service import Route, TranslationService, check_markup

# The texts of a cue, between the times and an empty line.
CUE = re.compile(
    r"(?P<head>^[\d:,. ]+-->[^\n]*\n)"
    r"(?P<text>(?![ \t]*\n|\d+\n[\d:,. ]+-->).+?)(?=\n[ \t]*\n|\n*\Z)",
    re.DOTALL | re.MULTILINE,
)
# Tags and a dash before a text: `{\an8}<i>- Yes.</i>`.
OPENING = re.compile(r"(?:<[^<>]*+>|\{[^{}]*+\}|- )*+")
LINE_LENGTH = 42  # Characters of a line of subtitles.


class SourceFile(Protocol):
    """A file to translate.

    Attributes:
        format: A format of `translate_markup`; `None` for plain text.
        plain: String, what the limits count and the language is detected from.
    """

    format: str | None
    plain: str

    def make_text(self) -> str:
        """Returns what is translated."""

    def fill(self, translation: str) -> bytes:
        """Returns the file with the translation of that text."""


class TextFile:
    """A `SourceFile` that is translated as a whole."""

    def __init__(self, content: bytes, format: str | None = None):
        self.plain = decode(content)
        self.format = format

    def make_text(self) -> str:
        return self.plain

    def fill(self, translation: str) -> bytes:
        return translation.encode()


class Subtitles:
    """A `SourceFile` of subtitles; numbers, times and enclosing tags stay.

    What is translated has the text of each cue on a line of its own.
    """

    format = None

    def __init__(self, content: bytes):
        text = decode(content)
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._text = text.replace("\r\n", "\n")
        self._cues = list(CUE.finditer(self._text))
        self._enclosed = [split_enclosing(cue["text"]) for cue in self._cues]
        self.plain = "\n".join(" ".join(t.split()) for _, t, _ in self._enclosed)

    def make_text(self) -> str:
        return self.plain

    def fill(self, translation: str) -> bytes:
        parts, end = [], 0
        texts = translation.split("\n") if self._cues else []
        for cue, (before, old, after), new in zip(
            self._cues, self._enclosed, texts, strict=True
        ):
            if "\n" in old.strip():
                new = textwrap.fill(new, LINE_LENGTH)
            parts += [self._text[end : cue.start("text")], before, new, after]
            end = cue.end()
        parts.append(self._text[end:])
        return "".join(parts).replace("\n", self._newline).encode()


def split_enclosing(text: str) -> tuple[str, str, str]:
    """Splits off the tags around a text.

    Example:
        >>> split_enclosing("<i>- Yes.</i>")
        ('<i>- ', 'Yes.', '</i>')
    """
    first, end = OPENING.match(text).end(), len(text)
    while text.endswith(">", first, end):
        start = text.rfind("<", first, end)
        if start < 0 or ">" in text[start : end - 1]:
            break
        end = start
    return text[:first], text[first:end], text[end:]


# The files of each of the schemas' `FILE_SUFFIXES`.
READERS = {
    ".txt": TextFile,
    ".html": functools.partial(TextFile, format="html"),
    ".md": functools.partial(TextFile, format="markdown"),
    ".srt": Subtitles,
    ".docx": DocxDocument,
}


def decode(content: bytes) -> str:
    """Returns the text of a file.

    Raises:
        ValueError: If it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("a file must be UTF-8") from None


async def read_file(content: bytes, suffix: str) -> SourceFile:
    """Reads a file.

    Args:
        content: Its bytes.
        suffix: The end of its name.

    Raises:
        HTTPException: If that is none of `READERS`, or the file is damaged.
    """
    if suffix not in READERS:
        raise http_error("Invalid request: file format not supported")
    try:
        return await run_in_thread(READERS[suffix], content)
    except ValueError as error:
        raise http_error(f"Invalid request: {error}") from None


async def translate_file(
    service: TranslationService, route: Route, file: SourceFile, suffix: str
) -> bytes:
    """Returns the translation of a file.

    Args:
        service: The service.
        route: The language pair.
        file: The file.
        suffix: The end of its name, for messages.

    Raises:
        HTTPException: If the model cannot translate its format.
    """
    if file.format is None:
        (found,) = await service.translate(route, [file.make_text()])
    else:
        check_markup(route, f"{suffix} files are")
        service.check([file.plain])
        text = await run_in_thread(file.make_text)
        (found,) = await service.translate_markup(route, [text], file.format)
    return await run_in_thread(file.fill, found.text)
