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
# Other text, or such blanks.
PARTS = re.compile(rf"[^ \t\n\r\f]+|{BLANKS.pattern}")


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


def append_text(
    token: Token, text: str, parts: list[str], starts: array.array, ends: array.array
) -> None:
    """Appends the text of a token, and where its characters are in the document."""
    for found in PARTS.finditer(text):
        part, (start, end) = found[0], found.span()
        if BLANKS.match(part):
            part = " "
            if parts[-1:] == [part]:
                continue
        parts.append(part)
        if token.end - token.start == len(token.text):
            inner = range(token.start + start + 1, token.start + start + len(part))
            starts.extend([token.start + start, *inner])
            ends.extend([*inner, token.start + end])
        else:
            starts.extend([token.start] * len(part))
            ends.extend([token.end] * len(part))


def make_segment(tokens: Iterable[Token], value: Value | None = None) -> Segment | None:
    """Returns the segment of tokens; `None` without letters, or with ICU's messages."""
    parts, marks, is_html = [], [], False
    starts, ends = array.array("q"), array.array("q")
    for token in tokens:
        start = len(starts)
        if token.kind is Kind.TEXT:
            is_html |= token.name == HTML
            append_text(token, token.text, parts, starts, ends)
            continue
        if token.kind is Kind.VERBATIM:
            append_text(token, token.text.strip(), parts, starts, ends)
        marks.append((start, len(starts), token))
    text = "".join(parts)
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
        where = starts[start], ends[end - 1]
        part = Token(Kind.VERBATIM, *where, text[start:end], PLACEHOLDER_NAME)
        marks.append((start, end, part))
    # Python keeps the order of tags at the same place.
    marks.sort(key=lambda mark: mark[2].start)
    return Segment(text, hide(hidden, found), starts, ends, marks, is_html, value)


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


def normalize_blanks(text: str) -> str:
    """Replaces all blanks but no-break spaces by one blank."""
    return BLANKS.sub(" ", text).strip(" ")
