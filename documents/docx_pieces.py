"""Takes the paragraphs of Word documents apart, into pieces and fields."""

import collections
import copy
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml import etree

# The namespaces of the two variants of ISO/IEC 29500.
NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
# Elements with runs that are translated, unlike `del` and `moveFrom`.
NAMES = "bdo customXml dir hyperlink ins moveTo sdt sdtContent smartTag"
CONTAINERS = frozenset(NAMES.split())
WITH_RUNS = CONTAINERS | {"fldSimple"}
# The elements that are taken apart.
PARENTS = frozenset(
    f"{{{space}}}{name}" for space in NAMESPACES for name in ("p", "r", *WITH_RUNS)
)
# Parts of incomplete fields, such as a table of contents, are among them.
BREAKS = frozenset(["br", "cr", "delInstrText", "fldChar", "instrText", "ptab", "tab"])
# Misspelt words and page breaks that Word found in the source.
DROPPED = frozenset(["lastRenderedPageBreak", "proofErr"])
# Properties of runs without an effect on their look.
UNSEEN = frozenset(["lang", "noProof"])
LINK = re.compile(r"\s*HYPERLINK\b", re.IGNORECASE)

Properties = etree._Element | None  # Of a run, its `rPr`.


class Piece(NamedTuple):
    """A part of a paragraph that is put back as a whole."""

    name: str  # Name of the element; that of a text is `"t"`.
    node: etree._Element  # The element, or a run that holds it alone.
    text: str = ""  # The text; of a mark of a field its type.
    properties: Properties = None  # Those of its run.
    format: str = ""  # Key that is the same for texts that look the same.


class Field(NamedTuple):
    """The pieces of a field: its code, its result and its end."""

    name = "field"

    code: list[Piece]
    result: list[Piece]
    end: list[Piece]

    @property
    def is_link(self) -> bool:
        code = [p.text for p in self.code if p.name == "instrText"]
        return bool(LINK.match("".join(code)))


def qualify(node: etree._Element, name: str) -> str:
    """Returns a name in the namespace of an element."""
    return etree.QName(etree.QName(node).namespace, name).text


def name_of(node: etree._Element) -> str:
    """Returns the name of an element of Word's; `""` for any other."""
    name = etree.QName(node)
    return name.localname if name.namespace in NAMESPACES else ""


def read_text(node: etree._Element) -> str:
    """Returns the text of an element, without that of text boxes in it."""
    parts = []
    for child in node:
        name = name_of(child)
        if name == "t":
            parts.append(child.text or "")
        elif name == "r" or name in WITH_RUNS:
            parts.append(read_text(child))
    return "".join(parts)


def take_pieces(parent: etree._Element) -> Iterator[Piece]:
    """Takes the pieces out of a paragraph or a container, and yields them."""
    for node in list(parent):
        name = name_of(node)
        if name.endswith("Pr"):
            continue  # The properties of the parent.
        parent.remove(node)
        if name == "r":
            yield from split_run(node)
        elif name not in DROPPED:
            yield Piece(name if name in WITH_RUNS else "", node)


def count_work(tree: etree._Element) -> int:
    """Estimates the work of taking paragraphs apart, in elements.

    An element counts for each parent that it is taken out of, and the properties of
    a run count for each of its pieces, which get a copy.
    """
    count = depth = 0
    for event, node in etree.iterwalk(tree, events=("start", "end")):
        is_parent = node.tag in PARENTS
        if event == "end":
            depth -= is_parent
            continue
        count += depth
        depth += is_parent
        properties = node.find("{*}rPr") if is_parent else None
        if properties is not None:
            count += len(node) * sum(1 for _ in properties.iter())
    return count


def iterate_content(parent: etree._Element) -> Iterator[etree._Element]:
    """Yields the elements of a paragraph and of its containers, in order."""
    for node in parent:
        yield node
        if name_of(node) in CONTAINERS:
            yield from iterate_content(node)


def split_run(run: etree._Element) -> Iterator[Piece]:
    """Yields the pieces of a run, which it takes apart."""
    properties = run.find(qualify(run, "rPr"))
    format = "".join(
        etree.tostring(each, method="c14n", exclusive=True).decode()
        for each in (() if properties is None else properties)
        if name_of(each) not in UNSEEN
    )
    names = {node: name_of(node) for node in run if node is not properties}
    names = {node: name for node, name in names.items() if name not in DROPPED}
    for node, name in names.items():
        single = run
        if len(names) > 1:
            single = etree.Element(run.tag, run.attrib, run.nsmap)
            if properties is not None:
                single.append(copy.deepcopy(properties))
            single.append(node)
        is_mark = name == "fldChar"
        text = node.get(qualify(node, "fldCharType")) if is_mark else node.text
        yield Piece(name, single, text or "", properties, format)


def group_fields(pieces: list[Piece]) -> list[Piece | Field]:
    """Groups the pieces of each outermost field that is complete."""
    opened, ends = [], {}
    for index, piece in enumerate(pieces):
        mark = piece.text if piece.name == "fldChar" else None
        if mark == "begin":
            opened.append([index, None])
        elif mark == "separate" and opened:
            opened[-1][1] = index
        elif mark == "end" and opened:
            begin, separate = opened.pop()
            ends[begin] = separate or begin, index
    units, index = [], 0
    while index < len(pieces):
        unit, end = pieces[index], index
        if index in ends:
            separate, end = ends[index]
            cuts = (index, separate + 1), (separate + 1, end), (end, end + 1)
            unit = Field(*(pieces[slice(*cut)] for cut in cuts))
        units.append(unit)
        index = end + 1
    return units


def most_common_format(units: Sequence[Piece | Field]) -> tuple[str, Properties]:
    """Returns the format of most characters, and properties that have it."""
    counts, examples = collections.Counter(), {"": None}
    for unit in units:
        if unit.name == "t":
            counts[unit.format] += len(unit.text)
            examples.setdefault(unit.format, unit.properties)
    format = max(counts, key=counts.get, default="")
    return format, examples[format]
