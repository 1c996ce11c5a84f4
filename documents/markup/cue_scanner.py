"""Finds the tags and texts of cues of subtitles, one speech a line.

They have tags and entities as in HTML, times in a text as in WebVTT, and commands
of Advanced SubStation Alpha, such as `{\\an8}`.
"""

import re
from collections.abc import Iterator

from documents.markup.html_scanner import split_at_entities
from documents.markup.markup_tokens import Kind, Token

# The pronunciation of a word, `<rt>`, belongs to it and is not translated.
TAG = (
    r"<rt[^<>\n]*+>[^<>\n]*+</rt>|</?[a-zA-Z][^<>\n]*+>|<[\d:.]++>"
    r"|\{\\[^{}\n]*+\}"
)
MARKUP = re.compile(rf"{TAG}|\n")
NAME = re.compile(r"</?([a-zA-Z][\w-]*)[^<>]*+>")


def read_cues(source: str) -> Iterator[Token]:
    """Yields the tokens of the texts of cues; a line end ends a sentence."""
    done = 0
    for found in MARKUP.finditer(source):
        start, end = found.span()
        yield from split_at_entities(source, done, start)
        if name := NAME.fullmatch(source, start, end):
            kind = Kind.CLOSE if source.startswith("</", start) else Kind.OPEN
            yield Token(kind, start, end, name=name[1].lower())
        else:
            kind = Kind.BREAK if found[0] == "\n" else Kind.VOID
            yield Token(kind, start, end)
        done = end
    yield from split_at_entities(source, done, len(source))
