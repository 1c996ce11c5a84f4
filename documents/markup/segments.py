"""Splits a document into runs of text with their inline tags."""

import array
import bisect
import dataclasses
import re
from collections.abc import Iterator

from documents.markup.html_scanner import read_text
from documents.markup.markup_tokens import HTML, Kind, Token, Value
from text_processing.placeholders import find_untranslatable_spans

PLACEHOLDER_NAME = "placeholder"  # The name of a part without a tag.
# Blanks that become one blank, unlike no-break spaces.
BLANKS = re.compile(r"[ \t\n\r\f]+")
# Those that are not one blank already.
OTHER_BLANKS = re.compile(r"[ \t\n\r\f]{2,}|[\t\n\r\f]")


@dataclasses.dataclass(eq=False)
class Segment:
    """The text between two sentence breaks, with its inline tags.

    Attributes:
        text: The text, with one blank for any number.
        hidden: The same text with letters instead of untranslated parts, so
            that no sentence ends in them.
        starts: Ints, where each character begins in the document.
        ends: Ints, where each character ends.
        marks: For each token that is not text, its span in the text and the
            token; sorted.
        is_html: Whether it is HTML in Markdown.
        value: The value of an attribute that it is, if any.
    """

    text: str
    hidden: str
    starts: array.array
    ends: array.array
    marks: list[tuple[int, int, Token]]
    is_html: bool = False
    value: Value | None = None


class SegmentWriter:
    """Builds a segment of tokens."""

    def __init__(self):
        self._parts, self._last, self._length = [], "", 0
        self._starts, self._ends = array.array("q"), array.array("q")
        self._marks, self._is_html = [], False

    def add(self, token: Token) -> None:
        """Adds a token of the document."""
        start = self._length
        if token.kind is Kind.TEXT:
            self._is_html |= token.name == HTML
            self._write(token, token.text)
            return
        if token.kind is Kind.VERBATIM:
            self._write(token, token.text.strip())
        self._marks.append((start, self._length, token))

    def _write(self, token: Token, text: str) -> None:
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
        self._length += len(text)
        if token.end - token.start == len(token.text):
            first = token.start + place
            last = first + len(text)
            self._starts.extend(range(first, last))
            self._ends.extend(range(first + 1, last + 1))
            self._ends[-1] += size - 1
        else:
            self._starts.extend([token.start] * len(text))
            self._ends.extend([token.end] * len(text))

    def finish(self, value: Value | None = None) -> Segment | None:
        """Returns the segment, or `None` if it has no letters."""
        text = "".join(self._parts)
        if not any(map(str.isalpha, text)):
            return None
        spans = [mark[:2] for mark in self._marks if mark[0] < mark[1]]
        hidden = hide(text, spans)
        firsts, lasts = ([m[side] for m in self._marks] for side in (0, 1))
        found = [
            (start, end)
            for start, end in find_untranslatable_spans(hidden)
            # There is no tag in it.
            if bisect.bisect_right(lasts, start) == bisect.bisect_left(firsts, end)
        ]
        for start, end in found:
            where = self._starts[start], self._ends[end - 1]
            part = Token(Kind.VERBATIM, *where, text[start:end], PLACEHOLDER_NAME)
            self._marks.append((start, end, part))
        # Python keeps the order of tags at the same place.
        self._marks.sort(key=lambda mark: mark[2].start)
        return Segment(
            text,
            hide(hidden, found),
            self._starts,
            self._ends,
            self._marks,
            self._is_html,
            value,
        )


def hide(text: str, spans: list[tuple[int, int]]) -> str:
    """Replaces untranslated parts of a text by letters."""
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], "X", "x" * (end - start - 1)]
        done = end
    return "".join([*parts, text[done:]])


def split_into_segments(
    tokens: list[Token], source: str, with_attributes: bool
) -> Iterator[Segment]:
    """Yields the segments of a document that have letters.

    Args:
        tokens: The tokens of the document.
        source: The document.
        with_attributes: Whether to yield those of attributes, too, before the
            one that they are in.
    """
    writer, values = SegmentWriter(), []
    for token in [*tokens, Token(Kind.BREAK, len(source), len(source))]:
        values += token.values if with_attributes else ()
        if token.kind is not Kind.BREAK:
            writer.add(token)
            continue
        yield from filter(None, (read_value(v, source) for v in values))
        segment = writer.finish()
        if segment:
            yield segment
        writer, values = SegmentWriter(), []


def read_value(value: Value, source: str) -> Segment | None:
    """Returns the segment of an attribute's value, if it has letters."""
    writer = SegmentWriter()
    for token in read_text(source, value.start, value.end):
        writer.add(token)
    return writer.finish(value)
