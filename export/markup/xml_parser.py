"""Finds the tags and texts of XML with expat.

XML does not say which elements end a sentence. Those are within one whose
parent has text of its own beside them, and all that they hold.
"""

import dataclasses
import xml.parsers.expat

import numpy as np

from export.markup.markup_tokens import Event
from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from export.markup.markup_tokens import keeps_text
from export.markup.markup_tokens import settle


def read_xml(source: str) -> list[Token]:
    """Returns the tokens of a document.

    Raises:
        ValueError: If it is not well-formed.
    """
    reader = Reader()
    try:
        reader.read(source.encode("utf-8", "surrogatepass"))
    except xml.parsers.expat.ExpatError as error:
        raise ValueError(
            f"`text` must be well-formed XML. Received: {error}"
        ) from None
    lengths = [len(c.encode("utf-8", "surrogatepass")) for c in source]
    starts = np.cumsum([0, *lengths])
    for event in reader.events:
        event.start = int(np.searchsorted(starts, event.start))
    return list(settle(merge_empty(reader.events, len(source)), len(source)))


def merge_empty(events: list[Event], end: int) -> list[Event]:
    """Makes one event of the start and end of an element such as `<a/>`.

    Its end is where the next event begins.
    """
    merged = []
    starts = [event.start for event in events[1:]] + [end]
    for event, following in zip(events, starts, strict=True):
        if event.kind is Kind.CLOSE and event.start == following:
            event = dataclasses.replace(merged.pop(), kind=Kind.VOID)
        merged.append(event)
    return merged


class Reader:
    """Notes where everything is.

    Attributes:
        events: What the document has, in order, and where in bytes.
    """

    def __init__(self):
        self.events = []
        # Of the open elements: the tags in them, and whether they have text.
        self._open = [([], False)]
        self._in_cdata = False

    def read(self, source: bytes) -> None:
        # Whatever encoding the document declares, these bytes are UTF-8.
        parser = self._parser = xml.parsers.expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = self._void
        parser.ProcessingInstructionHandler = self._void
        parser.StartCdataSectionHandler = self._start_cdata
        parser.EndCdataSectionHandler = self._end_cdata
        # Of the rest, the entities: with this they are not expanded.
        parser.DefaultHandler = self._void
        parser.Parse(source, True)

    def _note(self, kind: Kind, **what) -> Event:
        event = Event(kind, self._parser.CurrentByteIndex, **what)
        self.events.append(event)
        return event

    def _start(self, name, attributes):
        tag = self._note(
            Kind.OPEN,
            name=name,
            is_block=True,
            keeps=keeps_text(name, attributes),
        )
        self._open[-1][0].append(tag)
        self._open.append(([], False))

    def _end(self, name):
        tags, has_text = self._open.pop()
        if has_text:
            for tag in tags:
                tag.is_block = False
        tags.append(self._note(Kind.CLOSE, name=name, is_block=True))
        self._open[-1][0].extend(tags)

    def _text(self, text):
        if self._in_cdata:
            return
        if text.strip():
            self._open[-1] = (self._open[-1][0], True)
        self._note(Kind.TEXT, text=text)

    def _start_cdata(self):
        # It stays: what is text in it would have other escapes.
        self._in_cdata = True
        self._note(Kind.VOID)

    def _end_cdata(self):
        self._in_cdata = False

    def _void(self, *_):
        # Outside of the root there is no text.
        self._note(Kind.VOID, is_block=len(self._open) == 1)
