"""Finds the tags and texts of XML with expat.

XML does not define which elements end a sentence. An element is inline if its
parent contains text directly; so are all elements inside an inline one.
"""

import dataclasses
import xml.parsers.expat
from collections.abc import Iterator

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


def read_xml(source: str) -> Iterator[Token]:
    """Yields the tokens of a document."""
    data = source.encode("utf-8", "surrogatepass")
    try:
        elements, tokens = EventReader().read(data)
    except xml.parsers.expat.ExpatError as error:
        raise ValueError(f"`text` must be well-formed XML. Received: {error}") from None
    is_start = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    places = np.concatenate([[0], np.cumsum(is_start)])
    starts = places[[token.start for token in tokens]].tolist()
    starts.append(len(source))
    for number, (element, token) in enumerate(zip(elements, tokens, strict=True)):
        start, end = starts[number : number + 2]
        kind, parent = token.kind, element.parent
        if kind is Kind.OPEN:
            element.is_inline = parent.is_inline or parent.has_text
            if tokens[number + 1].kind is Kind.CLOSE and end == starts[number + 2]:
                kind = Kind.VOID  # The element is empty.
        is_block = not element.is_inline
        if token.kind in (Kind.TEXT, Kind.VOID):
            # There is no text outside of the root.
            is_block = token.kind is Kind.VOID and parent is None
        if kind is not Kind.CLOSE or start < end:
            yield token._replace(kind=kind, start=start, end=end, is_block=is_block)


class EventReader:
    """Records a token, without its end, and its element for each event of expat."""

    def __init__(self):
        self._elements, self._tokens = [], []
        self._element, self._in_cdata = Element(), False

    def read(self, source: bytes) -> tuple[list[Element], list[Token]]:
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
        return self._elements, self._tokens

    def _note(self, kind: Kind, **fields) -> None:
        start = self._parser.CurrentByteIndex
        self._elements.append(self._element)
        self._tokens.append(Token(kind, start, start, **fields))

    def _start(self, name, attributes):
        self._element = Element(self._element)
        keeps = is_untranslated(name, attributes, UNTRANSLATED)
        if attributes.get("translatable") == "false":  # As in Android.
            keeps = True
        self._note(Kind.OPEN, name=name, keeps=keeps)

    def _end(self, name):
        self._note(Kind.CLOSE, name=name)
        self._element = self._element.parent

    def _text(self, text):
        if self._in_cdata:
            return
        if text.strip():
            self._element.has_text = True
        self._note(Kind.TEXT, text=text)

    def _start_cdata(self):
        # CDATA is not translated, since its text has other escapes.
        self._in_cdata = True
        self._note(Kind.VOID)

    def _end_cdata(self):
        self._in_cdata = False

    def _void(self, *_):
        self._note(Kind.VOID)
