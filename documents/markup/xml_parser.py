"""Finds the tags and texts of XML with expat.

XML does not define which elements end a sentence. An element is inline if its
parent contains text directly; so are all elements inside an inline one.
"""

import dataclasses
import functools
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

# Elements of DocBook, DITA and Android whose text is not natural language.
NAMES = """
    apiname classname cmdname codeblock codeph command computeroutput constant
    envar errorcode exceptionname filename filepath function interfacename literal
    methodname option parameter programlisting returnvalue screen sgmltag structfield
    structname synopsis systemitem systemoutput userinput varname xliff:g
"""
UNTRANSLATED = CODE | CODE_BLOCKS | frozenset(NAMES.split())
# Those of DocBook and DITA that are in a sentence, but no part of it.
APART = frozenset(["draft-comment", "fn", "footnote", "indexterm", "remark"])


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
        elements, tokens = read_events(data)
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
            has_sentence = parent.is_inline or parent.has_text
            element.is_inline = has_sentence and token.name not in APART
            is_next = tokens[number - 1].kind is Kind.CLOSE and not parent.has_text
            if element.is_inline and is_next:  # As in a menu: its items are words.
                yield Token(Kind.TEXT, start, start, " ")
            if tokens[number + 1].kind is Kind.CLOSE and end == starts[number + 2]:
                kind = Kind.VOID  # The element is empty.
        is_block = not element.is_inline
        if token.kind in (Kind.TEXT, Kind.VOID):
            # There is no text outside of the root.
            is_block = token.kind is Kind.VOID and parent is None
        if kind is not Kind.CLOSE or start < end:
            yield token._replace(kind=kind, start=start, end=end, is_block=is_block)


def read_events(source: bytes) -> tuple[list[Element], list[Token]]:
    """Returns the element of each event of expat, and its token without an end."""
    elements, tokens = [], []
    element, in_cdata = Element(), False
    # These bytes are UTF-8, whatever encoding the document declares.
    parser = xml.parsers.expat.ParserCreate("utf-8")

    def note(kind, **fields):
        place = parser.CurrentByteIndex
        elements.append(element)
        tokens.append(Token(kind, place, place, **fields))

    def start(name, attributes):
        nonlocal element
        # The root of TTML has the name of an element of code.
        names = UNTRANSLATED if element.parent else ()
        element = Element(element)
        keeps = attributes.get("translatable") == "false" or is_untranslated(
            name, attributes, names
        )
        note(Kind.OPEN, name=name, keeps=keeps)

    def end(name):
        nonlocal element
        note(Kind.CLOSE, name=name)
        element = element.parent

    def write(text):
        if not in_cdata:
            element.has_text |= bool(text.strip())
            note(Kind.TEXT, text=text)

    def set_cdata(value):
        nonlocal in_cdata
        in_cdata = value  # It is not translated, since its text has other escapes.
        if value:
            note(Kind.VOID)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = write
    parser.StartCdataSectionHandler = functools.partial(set_cdata, True)
    parser.EndCdataSectionHandler = functools.partial(set_cdata, False)
    # With the last handler entities are not expanded.
    for name in ("Comment", "ProcessingInstruction", "Default"):
        setattr(parser, f"{name}Handler", lambda *_: note(Kind.VOID))
    parser.Parse(source, True)
    return elements, tokens
