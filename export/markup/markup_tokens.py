"""Tokens of a document: tags and texts, in the order of the source.

Each format has a parser that tells where things are in the source. What is
not translated is never written anew: it stays letter for letter.
"""

import dataclasses
import enum
from collections.abc import Iterator
from typing import NamedTuple


class Kind(enum.Enum):
    """What a part of a document is to the sentences."""

    TEXT = "text"
    OPEN = "open"  # A tag within a sentence, with text to come.
    CLOSE = "close"
    VOID = "void"  # Stands between words, such as an image or a comment.
    VERBATIM = "verbatim"  # Stands for words, such as code.
    BREAK = "break"  # Ends a sentence: a paragraph's tag, a script.


class Token(NamedTuple):
    """A part of a document.

    Attributes:
        kind: What it is.
        start: Int, where it begins in the source.
        end: Int, where it ends.
        text: What it says: of texts and what stands for words. Of a tag, how
            it is written beside a translation, if not as it was.
        name: The tag's name.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    name: str = ""


@dataclasses.dataclass
class Event:
    """What a parser of tags meets; it ends where the next begins.

    Attributes:
        kind: What it is: for tags within a sentence and others alike.
        start: Int, where it begins in the source.
        text: As of `Token`.
        name: A tag's name.
        is_block: Whether a tag ends a sentence.
        keeps: Whether what the tag holds is to stay; `None` if it does not say.
    """

    kind: Kind
    start: int
    text: str = ""
    name: str = ""
    is_block: bool = False
    keeps: bool | None = None


# Elements whose text is in no language, in HTML and the formats like it.
CODE = frozenset(["code", "kbd", "samp", "tt", "var", "math", "svg", "object"])
# The same of those that end a sentence.
CODE_BLOCKS = frozenset(["pre", "script", "style", "textarea", "template"])


def keeps_text(name: str, attributes: dict) -> bool | None:
    """Tells whether an element's text is to stay; `None` if it does not say.

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


def settle(
    events: list[Event], end: int, keeps: bool = False
) -> Iterator[Token]:
    """Yields the tokens of events; makes one of an element that stays.

    Args:
        events: In their order.
        end: Int, where the last ends.
        keeps: Whether they are in an element whose text is to stay.
    """
    place = 0
    while place < len(events):
        event, after = events[place], place + 1
        if event.kind is Kind.OPEN and event.keeps is not None:
            after = end_of_element(events, place)
        inner = events[place:after]
        ends = events[after].start if after < len(events) else end
        if event.kind is Kind.OPEN and event.keeps is keeps:
            # It says again what holds already.
            events[place] = dataclasses.replace(event, keeps=None)
            continue
        if event.kind is Kind.OPEN and event.keeps is False:
            inner[0] = dataclasses.replace(event, keeps=None)
            yield from settle(inner, ends)
        elif event.kind is Kind.OPEN and event.keeps:
            yield from keep(inner, ends)
        elif keeps or event.is_block:
            yield Token(Kind.BREAK, event.start, ends)
        elif event.start < ends:
            yield Token(event.kind, event.start, ends, event.text, event.name)
        place = after


def keep(events: list[Event], end: int) -> Iterator[Token]:
    """Yields the tokens of an element whose text is to stay."""
    first, *rest = events
    text = "".join(e.text for e in events if e.kind is Kind.TEXT)
    if not first.is_block and not any(e.is_block for e in rest):
        kind = Kind.VERBATIM if text.strip() else Kind.VOID
        yield Token(kind, first.start, end, text, first.name)
        return
    yield Token(Kind.BREAK, first.start, rest[0].start if rest else end)
    yield from settle(rest, end, keeps=True)


def end_of_element(events: list[Event], place: int) -> int:
    """Returns the place behind the element that begins at a place.

    One that is never closed ends with the events.
    """
    name, depth = events[place].name, 0
    for after in range(place, len(events)):
        if events[after].name == name:
            depth += events[after].kind is Kind.OPEN
            depth -= events[after].kind is Kind.CLOSE
            if not depth:
                return after + 1
    return len(events)
