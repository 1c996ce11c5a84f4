"""Finds the tags and texts of XML with expat.

XML does not define which elements end a sentence. An element is inline if its
parent contains text directly; so are all elements inside an inline one.
"""

import dataclasses
import xml.parsers.expat
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from documents.markup.markup_tokens import (
    CODE,
    CODE_BLOCKS,
    Kind,
    Token,
    is_untranslated,
)

# Elements of DocBook and DITA whose text is not natural language.
NAMES = """
    apiname classname cmdname codeblock codeph command computeroutput constant
    envar filename filepath function literal methodname option parameter
    programlisting screen synopsis userinput varname
"""
UNTRANSLATED = CODE | CODE_BLOCKS | frozenset(NAMES.split())


@dataclasses.dataclass
class Element:
    """An element of XML."""

    parent: "Element | None" = None
    has_text: bool = False  # Whether it contains text directly.
    is_inline: bool = False  # Whether it is a part of a sentence.


class Event(NamedTuple):
    """An event of the parser, which ends where the next one begins."""

    kind: Kind
    start: int  # In bytes.
    element: Element
    text: str = ""
    name: str = ""
    keeps: bool | None = None


def read_xml(source: str) -> Iterator[Token]:
    """Yields the tokens of a document."""
    reader = EventReader()
    data = source.encode("utf-8", "surrogatepass")
    try:
        reader.read(data)
    except xml.parsers.expat.ExpatError as error:
        raise ValueError(f"`text` must be well-formed XML. Received: {error}") from None
    is_start = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    places = np.concatenate([[0], np.cumsum(is_start)])
    starts = places[[event.start for event in reader.events]].tolist()
    starts.append(len(source))
    for place, event in enumerate(reader.events):
        start, end = starts[place : place + 2]
        element, parent = event.element, event.element.parent
        if event.kind is Kind.OPEN:
            element.is_inline = parent.is_inline or parent.has_text
        if event.kind is Kind.TEXT:
            yield Token(Kind.TEXT, start, end, event.text)
        elif event.kind is Kind.VOID:
            # There is no text outside of the root.
            yield Token(Kind.VOID, start, end, is_block=parent is None)
        elif event.kind is Kind.OPEN or start < end:
            is_empty = (
                event.kind is Kind.OPEN
                and reader.events[place + 1].kind is Kind.CLOSE
                and starts[place + 1] == starts[place + 2]
            )
            yield Token(
                Kind.VOID if is_empty else event.kind,
                start,
                end,
                name=event.name,
                is_block=not element.is_inline,
                keeps=event.keeps,
            )


class EventReader:
    """Records the events of a document, in order."""

    def __init__(self):
        self.events = []
        self._element, self._in_cdata = Element(), False

    def read(self, source: bytes) -> None:
        # These bytes are UTF-8, whatever encoding the document declares.
        parser = self._parser = xml.parsers.expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = self._void
        parser.ProcessingInstructionHandler = self._void
        parser.StartCdataSectionHandler = self._start_cdata
        parser.EndCdataSectionHandler = self._end_cdata
        # With this handler entities are not expanded.
        parser.DefaultHandler = self._void
        parser.Parse(source, True)

    def _note(self, kind: Kind, element: Element, *what) -> None:
        start = self._parser.CurrentByteIndex
        self.events.append(Event(kind, start, element, *what))

    def _start(self, name, attributes):
        self._element = Element(self._element)
        keeps = is_untranslated(name, attributes, UNTRANSLATED)
        if attributes.get("translatable") == "false":  # As in Android.
            keeps = True
        self._note(Kind.OPEN, self._element, "", name, keeps)

    def _end(self, name):
        self._note(Kind.CLOSE, self._element, "", name)
        self._element = self._element.parent

    def _text(self, text):
        if self._in_cdata:
            return
        if text.strip():
            self._element.has_text = True
        self._note(Kind.TEXT, self._element, text)

    def _start_cdata(self):
        # CDATA is not translated, since its text has other escapes.
        self._in_cdata = True
        self._note(Kind.VOID, self._element)

    def _end_cdata(self):
        self._in_cdata = False

    def _void(self, *_):
        self._note(Kind.VOID, self._element)
