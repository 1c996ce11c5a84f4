"""Tokens of a document: tags and texts, in the order of the source.

Each format has a parser that reports positions in the source. Text that is not
translated is copied from the source, so that it never changes.
"""

import dataclasses
import enum
from collections.abc import Iterator
from typing import NamedTuple


class Kind(enum.Enum):
    """Kinds of tokens, by their effect on sentences."""

    TEXT = "text"
    OPEN = "open"  # An inline start tag.
    CLOSE = "close"
    VOID = "void"  # Between words, such as an image or a comment.
    VERBATIM = "verbatim"  # Replaces words, such as code.
    BREAK = "break"  # Ends a sentence: a paragraph's tag, a script.


class Token(NamedTuple):
    """A part of a document.

    Attributes:
        kind: Its kind.
        start: Int, where it begins in the source.
        end: Int, where it ends.
        text: The text of a text, or of a token that replaces words. Of a tag,
            its source in a translation, if that differs from the original.
        name: The tag's name.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    name: str = ""


@dataclasses.dataclass
class Event:
    """An event of a tag parser; it ends where the next one begins.

    Attributes:
        kind: Its kind, without regard to `is_block`.
        start: Int, where it begins in the source.
        text: As in `Token`.
        name: A tag's name.
        is_block: Whether a tag ends a sentence.
        keeps: Whether the content of the tag is not translated; `None` if the
            tag does not decide.
    """

    kind: Kind
    start: int
    text: str = ""
    name: str = ""
    is_block: bool = False
    keeps: bool | None = None


# Inline elements whose text is not natural language.
CODE = frozenset(["code", "kbd", "samp", "tt", "var", "math", "svg", "object"])
# The same for elements that end a sentence.
CODE_BLOCKS = frozenset(["pre", "script", "style", "textarea", "template"])


def is_untranslated(name: str, attributes: dict) -> bool | None:
    """Returns whether an element is not translated; `None` if undecided.

    Args:
        name: The element's name.
        attributes: Dict from name to value.
    """
    wish = (attributes.get("translate") or "").lower()
    if wish in ("yes", "no"):
        return wish == "no"
    if "notranslate" in (attributes.get("class") or "").split():
        return True
    return True if name in CODE | CODE_BLOCKS else None


def to_tokens(
    events: list[Event], end: int, keeps: bool = False
) -> Iterator[Token]:
    """Yields the tokens of events; an untranslated element is one token.

    Args:
        events: The events in order.
        end: Int, where the last one ends.
        keeps: Whether they are in an element that is not translated.
    """
    place = 0
    while place < len(events):
        event, after = events[place], place + 1
        if event.kind is Kind.OPEN and event.keeps is not None:
            after = end_of_element(events, place)
        inner = events[place:after]
        ends = events[after].start if after < len(events) else end
        if event.kind is Kind.OPEN and event.keeps is keeps:
            # It repeats the current setting.
            events[place] = dataclasses.replace(event, keeps=None)
            continue
        if event.kind is Kind.OPEN and event.keeps is False:
            inner[0] = dataclasses.replace(event, keeps=None)
            yield from to_tokens(inner, ends)
        elif event.kind is Kind.OPEN and event.keeps:
            yield from untranslated_tokens(inner, ends)
        elif keeps or event.is_block:
            yield Token(Kind.BREAK, event.start, ends)
        elif event.start < ends:
            yield Token(event.kind, event.start, ends, event.text, event.name)
        place = after


def untranslated_tokens(events: list[Event], end: int) -> Iterator[Token]:
    """Yields the tokens of an element that is not translated."""
    first, *rest = events
    text = "".join(e.text for e in events if e.kind is Kind.TEXT)
    if not first.is_block and not any(e.is_block for e in rest):
        kind = Kind.VERBATIM if text.strip() else Kind.VOID
        yield Token(kind, first.start, end, text, first.name)
        return
    yield Token(Kind.BREAK, first.start, rest[0].start if rest else end)
    yield from to_tokens(rest, end, keeps=True)


def end_of_element(events: list[Event], place: int) -> int:
    """Returns the index after the element that begins at an index.

    An element that is never closed ends with the events.
    """
    name, depth = events[place].name, 0
    for after in range(place, len(events)):
        if events[after].name == name:
            depth += events[after].kind is Kind.OPEN
            depth -= events[after].kind is Kind.CLOSE
            if not depth:
                return after + 1
    return len(events)
