"""Splits a document into runs of text with their inline tags."""

import array
import bisect
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator

from documents.markup.html_scanner import split_at_entities
from documents.markup.markup_tokens import (
    HTML,
    Kind,
    Span,
    Token,
    Value,
    copy_with_edits,
)
from text_processing.placeholders import MESSAGE, find_untranslatable_spans

PLACEHOLDER_NAME = "placeholder"  # The name of a part without a tag.
# Blanks that become one blank, unlike no-break spaces.
BLANKS = re.compile(r"[ \t\n\r\f]+")
# Those that are not one blank already.
OTHER_BLANKS = re.compile(r"[ \t\n\r\f]{2,}|[\t\n\r\f]")


@dataclasses.dataclass(eq=False)
class Segment:
    """The text between two sentence breaks, with its inline tags."""

    text: str  # With one blank for any number.
    # With letters instead of untranslated parts, so that no sentence ends there.
    hidden: str
    starts: array.array  # Where each character begins in the document.
    ends: array.array  # Where each character ends.
    # The span in the text of each token that is not text, and the token; sorted.
    marks: list[tuple[int, int, Token]]
    is_html: bool  # Whether it is HTML in Markdown.
    value: Value | None  # The value of an attribute that it is, if any.


class TextWriter:
    """Writes the text of tokens, and where its characters are in the document."""

    def __init__(self):
        self._parts, self._last, self.length = [], "", 0
        self.starts, self.ends = array.array("q"), array.array("q")

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def write(self, token: Token, text: str) -> None:
        done = 0
        for found in OTHER_BLANKS.finditer(text):
            first, last = found.span()
            self._put(text[done:first], done, token)
            self._put(" ", first, token, last - first)
            done = last
        self._put(text[done:], done, token)

    def _put(self, text: str, place: int, token: Token, size: int = 1) -> None:
        if self._last == " " and text[:1] == " ":
            text, place = text[1:], place + 1
        if not text:
            return
        self._parts.append(text)
        self._last = text[-1]
        self.length += len(text)
        if token.end - token.start == len(token.text):
            first = token.start + place
            last = first + len(text)
            self.starts.extend(range(first, last))
            self.ends.extend(range(first + 1, last + 1))
            self.ends[-1] += size - 1
        else:
            self.starts.extend([token.start] * len(text))
            self.ends.extend([token.end] * len(text))


def make_segment(tokens: Iterable[Token], value: Value | None = None) -> Segment | None:
    """Returns the segment of tokens, or `None` if it is not translated.

    It is not if it has no letters, or messages of ICU in braces.
    """
    writer, marks, is_html = TextWriter(), [], False
    for token in tokens:
        start = writer.length
        if token.kind is Kind.TEXT:
            is_html |= token.name == HTML
            writer.write(token, token.text)
            continue
        if token.kind is Kind.VERBATIM:
            writer.write(token, token.text.strip())
        marks.append((start, writer.length, token))
    text = writer.text
    if not any(map(str.isalpha, text)) or MESSAGE.search(text):
        return None
    hidden = hide(text, [mark[:2] for mark in marks if mark[0] < mark[1]])
    firsts, lasts = ([mark[side] for mark in marks] for side in (0, 1))
    found = [
        (start, end)
        for start, end in find_untranslatable_spans(hidden)
        # There is no tag in it.
        if bisect.bisect_right(lasts, start) == bisect.bisect_left(firsts, end)
    ]
    for start, end in found:
        where = writer.starts[start], writer.ends[end - 1]
        part = Token(Kind.VERBATIM, *where, text[start:end], PLACEHOLDER_NAME)
        marks.append((start, end, part))
    # Python keeps the order of tags at the same place.
    marks.sort(key=lambda mark: mark[2].start)
    return Segment(
        text, hide(hidden, found), writer.starts, writer.ends, marks, is_html, value
    )


def hide(text: str, spans: list[Span]) -> str:
    """Replaces untranslated parts of a text by letters, one by no initial."""
    edits = [
        (start, end, "X" + "x" * (end - start - 1) if end - start > 1 else "ª")
        for start, end in spans
    ]
    return copy_with_edits(text, edits)


def split_into_segments(tokens: list[Token], source: str) -> Iterator[Segment]:
    """Yields the segments that have letters, in the order of the document."""
    group, values = [], []
    for token in [*tokens, Token(Kind.BREAK, len(source), len(source))]:
        values += token.values
        if token.kind is not Kind.BREAK:
            group.append(token)
            continue
        runs = [(split_at_entities(source, v.start, v.end), v) for v in values]
        found = filter(None, itertools.starmap(make_segment, [*runs, (group,)]))
        yield from sorted(found, key=lambda segment: segment.starts[0])
        group, values = [], []
