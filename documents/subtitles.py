"""Reads and writes subtitles: SubRip (.srt) and WebVTT (.vtt).

Only the texts of cues are translated; all else, such as notes and styles, is copied.
"""

import html
import itertools
import re
import textwrap
from collections.abc import Iterator

from documents.character_encoding import decode, encode
from documents.markup.html_scanner import CUE_TAG
from documents.markup.markup_tokens import Span, copy_with_edits
from text_processing.placeholders import find_untranslatable_spans

LINE = re.compile(r"([^\r\n]*+)(?:\r\n?|\n|\Z)")
TIMES = re.compile(r"[ \t]*\d[\d:., \t]*+-->")
# What is between the lines of a speech.
LINE_END = re.compile(r"(?i:<br[ \t]*/?>)|\\N|\r\n?|\n")
TAGS = re.compile(rf"{CUE_TAG}|[\0\1]")  # `\0` stands for a tag.
BLANKS = "[ \t\u200e\u200f\u202a-\u202e]++"  # With marks of direction.
# Notes, arrows, emoji and the like; marks that begin and end the text of a song.
SYMBOLS = "[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f\u200d~〜～]++|[#*]++(?!\\S)"
DASH = r"[-‐‑–—―－]++(?!\d)|(?:>|&gt;)++(?!\S)"
# The dash and symbols before a text, with the tags before them.
OPENING = re.compile(rf"(?:(?:{CUE_TAG}|{BLANKS})*+(?:{SYMBOLS}|{DASH})++)*+")
# The symbols after a text, with the tags after them, both reversed.
CLOSING = re.compile(
    rf"(?:(?:>[^<>\n]*+<|\}}[^{{}}\n]*+\\\{{|{BLANKS})*+(?:{SYMBOLS})++)*+"
)
SPEAKER = re.compile(
    rf"(?:{BLANKS})?<v[ \t.]|(?:{CUE_TAG}|{BLANKS})*+(?:\[[^\[\]]*+\]|（[^（）]*+）|"
    r"(?P<name>[^\W\d_][^\s:：]*+(?: [^\s:：]++){0,2})(?::(?!\S)|：))"
)
LINE_LENGTH = 42  # Characters of a line of subtitles.


class Subtitles:
    """Subtitles, a `Document`; `text` has each speech of a cue on a line of its own."""

    def __init__(self, content: bytes, format: str):
        self._source, self._encoding = decode(content, format)
        self._spans = list(find_speeches(self._source, format))
        speeches = [self._source[start:end] for start, end in self._spans]
        self._speeches = [LINE_END.sub(" ", speech) for speech in speeches]
        self.text = "\n".join(self._speeches)
        self.plain = TAGS.sub("", self.text)
        has_entities = html.unescape(self.text) != self.text
        # SubRip with entities is escaped as WebVTT is.
        self.format = "vtt" if has_entities else format
        if not has_entities and self.plain == self.text:
            self.format = None  # Plain text.

    def fill(self, translation: str) -> bytes:
        edits = []
        texts = translation.split("\n") if self._spans else []
        for span, old, new in zip(self._spans, self._speeches, texts, strict=True):
            if new != old:
                line_end = LINE_END.search(self._source, *span)
                edits.append((*span, wrap(new, line_end[0]) if line_end else new))
        text = copy_with_edits(self._source, edits)
        return encode(text, self._encoding, self.format)


def find_speeches(source: str, format: str) -> Iterator[Span]:
    """Yields the spans of speeches, without dashes and symbols at their ends."""
    for start, end in join_lines(source, format):
        text = source[start:end]
        first = OPENING.match(text).end()
        last = len(text) - CLOSING.match(text[::-1]).end()
        text = text[first:last]
        if text.strip():
            first += len(text) - len(text.lstrip())
            yield start + first, start + first + len(text.strip())


def join_lines(source: str, format: str) -> Iterator[Span]:
    """Yields the spans of whole lines of cues that belong together."""
    in_cue, speech = False, None
    lines = [found.span(1) for found in LINE.finditer(source)]
    for (start, end), (after, _) in itertools.pairwise([*lines, (len(source),) * 2]):
        line = source[start:end]
        is_text = in_cue and bool(line.strip()) and not TIMES.match(line)
        if TIMES.match(source, after) and (speech is None or line.strip().isdigit()):
            is_text = False  # The number of a cue.
        if is_text and speech and not begins_speech(line):
            speech = speech[0], end
            continue
        if speech:
            yield speech
        speech = (start, end) if is_text else None
        if TIMES.match(line):
            in_cue = True
        elif not line and format == "vtt":
            in_cue = False  # A note may follow; captions of YouTube have lines of " ".
    if speech:
        yield speech


def begins_speech(line: str) -> bool:
    """Returns whether a line of a cue begins with a dash, a symbol or a speaker."""
    if OPENING.match(line).end():
        return True
    found = SPEAKER.match(line)
    if not found:
        return False
    return not any(word[0].islower() for word in (found["name"] or "").split())


def wrap(text: str, line_end: str) -> str:
    """Wraps a text, in which a tag, a URL and a variable are one character wide."""
    tags, hidden = iter(TAGS.findall(text)), TAGS.sub("\0", text)
    spans = find_untranslatable_spans(hidden)
    parts = iter([hidden[slice(*span)] for span in spans])
    hidden = copy_with_edits(hidden, [(*span, "\1") for span in spans])
    lines = textwrap.wrap(hidden, LINE_LENGTH, break_on_hyphens=False)
    found = re.sub("\1", lambda _: next(parts), line_end.join(lines))
    return re.sub("\0", lambda _: next(tags), found)
