"""Tokens of a document: tags and texts, in the order of the source.

Each format has a parser that reports positions in the source. Text that is not
translated is copied from the source, so that it never changes.
"""

import bisect
import dataclasses
import enum
from collections.abc import Iterable
from typing import NamedTuple

Span = tuple[int, int]  # Where a part of a text begins and ends.
Edit = tuple[int, int, str]  # A span, and the text that replaces it.


class Kind(enum.Enum):
    """Kinds of tokens, by their effect on sentences."""

    TEXT = "text"
    OPEN = "open"  # An inline start tag.
    CLOSE = "close"
    VOID = "void"  # Between words, such as an image or a comment.
    VERBATIM = "verbatim"  # Replaces words, such as code.
    BREAK = "break"  # Ends a sentence: a paragraph's tag, a script.


class Value(NamedTuple):
    """A text within a token that is translated apart, such as an attribute's."""

    start: int
    end: int
    # `"quoted"`, `"unquoted"`, or for an image `"markdown"`.
    syntax: str


class Token(NamedTuple):
    """A part of a document, from `start` to `end` in its source."""

    kind: Kind
    start: int
    end: int
    # That of a text, or of a token that replaces words. Of a tag, its source in a
    # translation, if that differs from the original.
    text: str = ""
    name: str = ""  # The tag's.
    is_block: bool = False  # Whether a tag ends a sentence.
    # Whether the content of a tag stays; `None` if the tag does not decide.
    keeps: bool | None = None
    values: tuple[Value, ...] = ()  # Those in it that are translated.


# The same for elements that end a sentence.
CODE_BLOCKS = frozenset(["pre", "script", "style", "textarea", "template"])
# Pronunciations, and their brackets for browsers that do not put them apart.
RUBY_TEXTS = frozenset(["rt", "rp"])
# Inline elements whose text is not natural language.
NAMES = ["code", "kbd", "samp", "tt", "var", "math", "svg", "object"]
CODE = RUBY_TEXTS | frozenset(NAMES)
HTML = "html"  # The name of texts of HTML in Markdown.
MAX_DEPTH = 200  # Maximum depth of nested tags in a sentence.
CHANGES = {Kind.OPEN: 1, Kind.CLOSE: -1}
# Punctuation that a model translates. Any other sign, such as ¶, is a symbol.
PUNCTUATION = frozenset(".,;:!?…'\"()[]«»‹›“”‘’„‚¿¡-‐‑–—/&%、。，；：！？（）「」『』")


def copy_with_edits(
    source: str, edits: list[Edit], start: int = 0, end: int | None = None
) -> str:
    """Returns a span of a text with its edits; they are sorted, none crosses an end."""
    end = len(source) if end is None else end
    parts, first = [], bisect.bisect_left(edits, (start,))
    for begin, done, text in edits[first : bisect.bisect_left(edits, (end,))]:
        parts += [source[start:begin], text]
        start = done
    return "".join([*parts, source[start:end]])


def is_untranslated(
    name: str, attributes: dict, code: frozenset[str] = CODE | CODE_BLOCKS
) -> bool | None:
    """Returns whether an element is not translated; `None` if undecided."""
    wish = attributes.get("translate") or attributes.get("its:translate") or ""
    wish = wish.lower()
    if wish in ("yes", "no"):
        return wish == "no"
    classes = (attributes.get("class") or "").split()
    return "notranslate" in classes or name in code or None


@dataclasses.dataclass
class Scope:
    """An open element that begins or ends an untranslated part."""

    name: str
    keeps: bool  # Whether its content is not translated.
    place: int  # Index of its first token in the result.
    text_place: int  # Index of its first text.
    has_block: bool = False  # Whether it is a block or contains one.
    depth: int = 0  # Number of open elements of its name.


def resolve(tokens: Iterable[Token]) -> list[Token]:
    """Applies `is_block` and `keeps` of the tokens of a document.

    An inline element that is not translated becomes one token. In any other,
    all tokens become sentence breaks. An element that is never closed ends at
    the end of the document.
    """
    found, texts, scopes = [], [], []
    for token in tokens:
        kind = token.kind
        if kind in (Kind.TEXT, Kind.VERBATIM):
            texts.append(token.text)
        keeps = bool(scopes) and scopes[-1].keeps
        switches = kind is Kind.OPEN and token.keeps not in (None, keeps)
        if switches:
            if len(scopes) == MAX_DEPTH:
                raise ValueError(
                    f"`text` must nest at most {MAX_DEPTH} elements with and "
                    f"without translation. Received: one more at {token.start}"
                )
            scopes.append(Scope(token.name, token.keeps, len(found), len(texts)))
        if scopes and token.is_block:
            scopes[-1].has_block = True
        if token.is_block or keeps != switches:
            values = () if keeps and not switches else token.values
            token = token._replace(kind=Kind.BREAK, values=values)
        found.append(token)
        if kind in CHANGES:
            end = count_tag(scopes, token.name, CHANGES[kind])
            while len(scopes) > end:
                leave_scope(scopes, found, texts)
    while scopes:
        leave_scope(scopes, found, texts)
    return merge_wordless_elements(found)


def count_tag(scopes: list[Scope], name: str, change: int) -> int:
    """Counts a tag in the innermost scope of its name; returns how many stay open."""
    for place in reversed(range(len(scopes))):
        if scopes[place].name == name:
            scopes[place].depth += change
            return len(scopes) if scopes[place].depth else place
    return len(scopes)


def leave_scope(scopes: list[Scope], found: list[Token], texts: list[str]) -> None:
    """Removes the innermost scope, and merges its tokens if it is inline."""
    scope = scopes.pop()
    if scope.has_block and scopes:
        scopes[-1].has_block = True
    if scope.keeps and not scope.has_block:
        text = "".join(texts[scope.text_place :])
        first, last = found[scope.place], found[-1]
        is_text = text.strip() and scope.name not in RUBY_TEXTS
        kind = Kind.VERBATIM if is_text else Kind.VOID
        found[scope.place :] = [first._replace(kind=kind, end=last.end, text=text)]


def merge_wordless_elements(tokens: list[Token]) -> list[Token]:
    """Merges each inline element without words into one token.

    A model would lose or change symbols such as those of `<a href="#">¶</a>`.
    An element is not merged if it has punctuation, or blanks at its ends.
    """
    found = []
    opened = []  # Indices in `found` of elements that may be merged.
    for token in tokens:
        kind = token.kind
        if kind is Kind.OPEN:
            opened.append(len(found))
        elif kind is Kind.TEXT:
            if any(c.isalnum() or c in PUNCTUATION for c in token.text):
                opened.clear()
        elif kind is not Kind.VOID and kind is not Kind.CLOSE:
            opened.clear()
        elif kind is Kind.CLOSE and opened:
            first = opened.pop()
            ends = found[first + 1 : first + 2] + found[-1:]
            texts = [each.text for each in ends if each.kind is Kind.TEXT]
            if found[first].name != token.name:
                opened.clear()
            elif texts == [text.strip() for text in texts]:
                values = tuple(v for t in found[first:] for v in t.values)
                found[first:] = [
                    found[first]._replace(kind=Kind.VOID, end=token.end, values=values)
                ]
                continue
        found.append(token)
    return found
