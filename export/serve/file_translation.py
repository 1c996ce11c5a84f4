"""Translates files: plain text, HTML, Markdown and SubRip subtitles."""

import re
import textwrap

from export.serve.schemas import http_error
from export.serve.translation_service import Route
from export.serve.translation_service import TranslationService

# Names of the formats of `translate_markup`.
MARKUP_FORMATS = {".html": "html", ".md": "markdown"}
SUFFIXES = (".txt", *MARKUP_FORMATS, ".srt")
# The texts of a cue, between the times and an empty line.
CUE = re.compile(
    r"(?P<head>^[\d:,. ]+-->[^\n]*\n)(?P<text>.+?)(?=\n[ \t]*\n|\n*\Z)",
    re.DOTALL | re.MULTILINE,
)
# Tags and a dash that enclose a text: `{\an8}<i>- Yes.</i>`.
ENCLOSED = re.compile(
    r"((?:<[^>]*>|\{[^}]*\}|- )*)(.*?)((?:<[^>]*>)*)", re.DOTALL
)
LINE_LENGTH = 42  # Characters of a line of subtitles.


def decode(content: bytes) -> str:
    """Returns the text of a file.

    Raises:
        HTTPException: If it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise http_error("Invalid request: a file must be UTF-8") from None


async def translate_file(
    service: TranslationService, route: Route, text: str, suffix: str
) -> str:
    """Translates the text of a file.

    Args:
        service: The service.
        route: The language pair.
        text: The text of the file.
        suffix: One of `SUFFIXES`.

    Raises:
        HTTPException: If the model cannot translate the format.
    """
    if suffix in MARKUP_FORMATS:
        (found,) = await service.translate_html(
            route, [text], MARKUP_FORMATS[suffix]
        )
        return found.text
    if suffix == ".srt":
        subtitles = Subtitles(text)
        (found,) = await service.translate(route, [subtitles.lines])
        return subtitles.fill(found.text)
    (found,) = await service.translate(route, [text])
    return found.text


class Subtitles:
    """Subtitles, whose numbers, times and enclosing tags stay.

    Args:
        text: The text of a SubRip file.

    Attributes:
        lines: String, the text of each cue on a line of its own.
    """

    def __init__(self, text: str):
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._text = text.replace("\r\n", "\n")
        self._cues = list(CUE.finditer(self._text))
        self._enclosed = [
            ENCLOSED.fullmatch(cue["text"]).groups() for cue in self._cues
        ]
        self.lines = "\n".join(
            " ".join(t.split()) for _, t, _ in self._enclosed
        )

    def fill(self, lines: str) -> str:
        """Returns the file with the translations of `lines`."""
        parts, end = [], 0
        texts = lines.split("\n") if self._cues else []
        for cue, (before, old, after), new in zip(
            self._cues, self._enclosed, texts, strict=True
        ):
            if "\n" in old.strip():
                new = textwrap.fill(new, LINE_LENGTH)
            parts += [self._text[end : cue.start("text")], before, new, after]
            end = cue.end()
        parts.append(self._text[end:])
        return "".join(parts).replace("\n", self._newline)
