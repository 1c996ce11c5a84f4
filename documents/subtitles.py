"""Reads and writes subtitles in SubRip's form (.srt)."""

import re
import textwrap

from documents.character_encoding import decode, encode
from documents.markup.markup_tokens import copy_with_edits

# The texts of a cue, between the times and an empty line.
CUE = re.compile(
    r"(?P<head>^[\d:,. ]+-->[^\n]*\n)"
    r"(?P<text>(?![ \t]*\n|\d+\n[\d:,. ]+-->).+?)(?=\n[ \t]*\n|\n*\Z)",
    re.DOTALL | re.MULTILINE,
)
# Tags and a dash before a text: `{\an8}<i>- Yes.</i>`.
OPENING = re.compile(r"(?:<[^<>]*+>|\{[^{}]*+\}|- )*+")
LINE_LENGTH = 42  # Characters of a line of subtitles.


class Subtitles:
    """Subtitles, a `Document`; numbers, times and enclosing tags stay.

    What is translated has the text of each cue on a line of its own.
    """

    format = None

    def __init__(self, content: bytes):
        text, self._encoding = decode(content, "srt")
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._source = text.replace("\r\n", "\n")
        self._cues = list(CUE.finditer(self._source))
        self._enclosed = [split_enclosing(cue["text"]) for cue in self._cues]
        self.text = "\n".join(" ".join(t.split()) for _, t, _ in self._enclosed)
        self.plain = self.text

    def fill(self, translation: str) -> bytes:
        edits = []
        texts = translation.split("\n") if self._cues else []
        for cue, (before, old, after), new in zip(
            self._cues, self._enclosed, texts, strict=True
        ):
            if "\n" in old.strip():
                new = textwrap.fill(new, LINE_LENGTH)
            edits.append((*cue.span("text"), f"{before}{new}{after}"))
        text = copy_with_edits(self._source, edits).replace("\n", self._newline)
        return encode(text, self._encoding, "srt")


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
