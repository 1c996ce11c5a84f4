"""Reads TMX, the format of translation memories, plain or gzip."""

import pathlib
from collections.abc import Iterator

from lxml import etree

from command_line.errors import UserError, first_line
from command_line.text_files import open_text
from train.data.formats.language_codes import find_code, normalize, require_codes

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# Their content is markup of another program.
INLINE_CODES = [f"{{*}}{name}" for name in ("bpt", "ept", "it", "ph", "ut")]


def read_pairs(
    path: pathlib.Path, source: str, target: str
) -> Iterator[tuple[str, str]]:
    """Yields the pairs; a unit without one of the languages is none."""
    codes, there, names, found = (source, target), {}, [None, None], False
    for unit in read_units(path):
        if unit.keys() - there.keys():
            there |= dict.fromkeys(unit)
            before, names = names, [find_code(code, there, path) for code in codes]
            for old, new in zip(before, names, strict=True):
                if old not in (None, new):  # Pairs of the variant have been read.
                    raise UserError(f"{path} has {old} and {new}: name {old}")
        if all(name in unit for name in names):
            found = True
            yield tuple(unit[name] for name in names)
    if not found:
        require_codes(codes, there, path)
        raise UserError(f"{path} has no unit with both {source} and {target}")


def read_units(path: pathlib.Path) -> Iterator[dict[str, str]]:
    """Yields the text of each unit by language."""
    number = 0
    with open_text(path) as file:
        try:
            units = etree.iterparse(file, tag="{*}tu", resolve_entities=False)
            for _, unit in units:
                yield dict(map(read_variant, unit.iterfind("{*}tuv")))
                number += 1
                unit.clear()
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise UserError(
                f"{path} must be TMX. Received: unit {number + 1}: {first_line(error)}"
            ) from None


def read_variant(variant: etree._Element) -> tuple[str, str]:
    """Returns the language and the text of a `tuv`."""
    language = variant.get(LANGUAGE) or variant.get("lang", "")  # TMX before 1.4.
    segment = variant.find("{*}seg")
    if segment is None:
        return normalize(language), ""
    etree.strip_elements(segment, etree.Comment, *INLINE_CODES, with_tail=False)
    return normalize(language), "".join(segment.itertext())
