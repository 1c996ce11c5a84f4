"""Finds the tags and texts of XML with expat.

XML does not define which elements end a sentence. An element is inline if its
parent contains text directly; so are all elements inside an inline one.
"""

import dataclasses
import xml.parsers.expat

import numpy as np

from export.markup.markup_tokens import Event
from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from export.markup.markup_tokens import is_untranslated
from export.markup.markup_tokens import to_tokens


def read_xml(source: str) -> list[Token]:
    """Returns the tokens of a document.

    Raises:
        ValueError: If the document is not well-formed.
    """
    reader = EventReader()
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
    return list(to_tokens(merge_empty(reader.events, len(source)), len(source)))


def merge_empty(events: list[Event], end: int) -> list[Event]:
    """Merges the start and end of an element such as `<a/>` into one event."""
    merged = []
    starts = [event.start for event in events[1:]] + [end]
    for event, following in zip(events, starts, strict=True):
        if event.kind is Kind.CLOSE and event.start == following:
            event = dataclasses.replace(merged.pop(), kind=Kind.VOID)
        merged.append(event)
    return merged


class EventReader:
    """Records the events of a document.

    Attributes:
        events: The events in order, with their positions in bytes.
    """

    def __init__(self):
        self.events = []
        # For each open element, its inline tags and whether it has text.
        self._open = [([], False)]
        self._in_cdata = False

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

    def _note(self, kind: Kind, **what) -> Event:
        event = Event(kind, self._parser.CurrentByteIndex, **what)
        self.events.append(event)
        return event

    def _start(self, name, attributes):
        tag = self._note(
            Kind.OPEN,
            name=name,
            is_block=True,
            keeps=is_untranslated(name, attributes),
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
        # CDATA is not translated, since its text has other escapes.
        self._in_cdata = True
        self._note(Kind.VOID)

    def _end_cdata(self):
        self._in_cdata = False

    def _void(self, *_):
        # There is no text outside of the root.
        self._note(Kind.VOID, is_block=len(self._open) == 1)
