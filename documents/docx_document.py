"""Translates Word documents (.docx) as HTML, whose tags it turns back.

Each paragraph is a `<p>`. Text in its most frequent format has no tag, other
text is in `<span>`. A hyperlink or another element with runs is an `<a>`, the
result of a field is `<code>`, which is not translated, and what has no text is
`<br>` if it ends a sentence, else `<img>`.
"""

import copy
import functools
import html
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from documents import docx_package, docx_pieces
from documents.docx_pieces import Field, Piece, Properties, name_of, qualify, read_text

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Kept(NamedTuple):
    """The elements that a tag of the HTML stands for."""

    before: Sequence[etree._Element] = ()  # Those before its content.
    # What its content is put into; `None` if it is that of the tag around it.
    content: etree._Element | None = None
    after: Sequence[etree._Element] = ()  # Those after its content.
    properties: Properties = None  # Those of its texts.


class DocxDocument:
    """A .docx file: its paragraphs with letters in body, headers, footers and notes.

    The translated parts have at most `max_tags`, which also limits `count_work`.

    Raises:
        ValueError: If it is not a .docx file, or unpacks to too much.
    """

    format = "html"

    def __init__(self, content: bytes, max_tags: int | None = None):
        self._parts = docx_package.read_parts(content)
        is_translated = docx_package.TRANSLATED.fullmatch
        translated = {n: p for n, (_, p) in self._parts.items() if is_translated(n)}
        # Before trees are built, which need a hundred times as much memory.
        count = sum(part.count(b"<") for part in translated.values())
        docx_package.check_size(count, max_tags)
        parse = docx_package.parse_xml
        self._trees = {name: parse(part) for name, part in translated.items()}
        work = sum(map(docx_pieces.count_work, self._trees.values()))
        docx_package.check_size(work, max_tags, "elements to move or copy")
        self._kept, self._paragraphs, texts = [], [], []
        for name, tree in self._trees.items():
            if not name_of(tree):
                raise docx_package.refusal(f"one whose {name} is another")
            for paragraph in tree.iter(qualify(tree, "p")):
                text = read_text(paragraph)
                if any(map(str.isalpha, text)):
                    self._paragraphs.append(paragraph)
                    texts.append(text)
        self.plain = "\n".join(texts)

    @functools.cached_property
    def text(self) -> str:
        """The paragraphs as HTML."""
        written = [self._write_element("p", p) for p in self._paragraphs]
        return "\n".join(["<body>", *written, "</body>"])

    def fill(self, translation: str) -> bytes:
        """Returns the file with the translation of that text; works once."""
        for element in docx_package.parse_xml(NOT_XML.sub("", translation).encode()):
            kept = self._kept[int(element.get("id"))]
            self._fill(kept.content, element, kept.properties)
            order_ranges(kept.content)
        return docx_package.write_parts(self._parts, self._trees)

    def _fill(
        self, parent: etree._Element, element: etree._Element, properties: Properties
    ) -> None:
        """Puts the content of an element of the HTML back into a parent."""
        append_run(parent, element.text, properties)
        for child in element:
            kept = self._kept[int(child.get("id"))]
            parent.extend(kept.before)
            if child.tag in ("a", "span"):
                inside = parent if kept.content is None else kept.content
                self._fill(inside, child, kept.properties)
            parent.extend(kept.after)
            append_run(parent, child.tail, properties)

    def _write_element(self, tag: str, node: etree._Element) -> str:
        """Returns the HTML of an element, and takes its content out."""
        kept = Kept(() if tag == "p" else (node,), node)
        units = docx_pieces.group_fields(list(docx_pieces.take_pieces(node)))
        return self._write_units(tag, kept, units)

    def _write_units(self, tag: str, kept: Kept, units: Sequence[Piece | Field]) -> str:
        """Returns the HTML of a tag with units in it."""
        usual, properties = docx_pieces.most_common_format(units)
        parts = []
        for key, group in itertools.groupby(
            units, lambda unit: unit.format if unit.name == "t" else unit
        ):
            if not isinstance(key, str):
                parts.append(self._write_unit(key))
                continue
            texts = list(group)
            part = escape("".join(piece.text for piece in texts))
            if key != usual:
                span = Kept(properties=texts[0].properties)
                part = self._write_tag("span", span, part)
            parts.append(part)
        kept = kept._replace(properties=properties)
        return self._write_tag(tag, kept, "".join(parts))

    def _write_unit(self, unit: Piece | Field) -> str:
        if unit.name in docx_pieces.CONTAINERS:
            return self._write_element("a", unit.node)
        if unit.name == "field":
            code, result, end = ([p.node for p in pieces] for pieces in unit)
            if unit.is_link:
                return self._write_units("a", Kept(code, None, end), unit.result)
            text = escape("".join(map(read_text, result)))
            return self._write_tag("code", Kept([*code, *result, *end]), text)
        if unit.name == "fldSimple":
            text = escape(read_text(unit.node))
            return self._write_tag("code", Kept([unit.node]), text)
        tag = "br" if unit.name in docx_pieces.BREAKS else "img"
        return self._write_tag(tag, Kept([unit.node]))

    def _write_tag(self, tag: str, kept: Kept, content: str = "") -> str:
        number = len(self._kept)
        self._kept.append(kept)
        if tag in ("br", "img"):
            return f'<{tag} id="{number}"/>'
        return f'<{tag} id="{number}">{content}</{tag}>'


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def append_run(
    parent: etree._Element, text: str | None, properties: Properties
) -> None:
    """Appends a run with a text, if there is any."""
    if not text:
        return
    run = etree.SubElement(parent, qualify(parent, "r"))
    if properties is not None:
        run.append(copy.deepcopy(properties))
    node = etree.SubElement(run, qualify(parent, "t"), {SPACE: "preserve"})
    node.text = text


def order_ranges(paragraph: etree._Element) -> None:
    """Swaps starts and ends of bookmarks and the like that changed places."""
    ends = {}
    for node in list(docx_pieces.iterate_content(paragraph)):
        name, number = (name_of(node), node.get(qualify(paragraph, "id")))
        key = re.sub("End$", "Start", name), number
        if name.endswith("End"):
            ends[key] = node
        elif key in ends:
            place, end = etree.Element("place"), ends[key]
            node.getparent().replace(node, place)
            end.getparent().replace(end, node)
            place.getparent().replace(place, end)
