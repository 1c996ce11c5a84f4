"""Reads and writes Word documents (.docx): zip archives; other parts are copied."""

import codecs
import io
import re
import zipfile
import zlib

from lxml import etree

# Maximum difference of the unpacked size and that of the file, in bytes.
MAX_GROWTH = 2**23
MAX_PARTS = 2000
MAIN = "word/document.xml"
# Word of Office 365 may number each of them, as `document2.xml`.
TRANSLATED = re.compile(r"word/(document|header|footer|footnotes|endnotes)\d*\.xml")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Encrypted documents, and .doc.
ENCRYPTED = 1  # A bit of `flag_bits`.
# Those of the standard. Others may take gigabytes.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# An entry of the directory of an archive: the unpacked size of a translated part.
ENTRY = re.compile(
    rb"PK\x01\x02.{20}(.{4}).{18}" + TRANSLATED.pattern.encode(), re.DOTALL
)
# The errors of `zipfile` for damaged archives, some of which it does not support.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError)
Parts = dict[str, tuple[zipfile.ZipInfo, bytes]]


def check_size(count: int, limit: int | None, unit: str = "tags") -> None:
    """Refuses a document with too many tags or the like; `None` is no limit."""
    if limit is not None and count > limit:
        raise ValueError(
            f"a .docx file must have at most {limit} {unit}. Received: {count}"
        )


def read_parts(content: bytes) -> Parts:
    """Returns the parts of a .docx file by name."""
    if content.startswith(OLE):
        raise refusal("another kind of file: an encrypted one, or a .doc")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except DAMAGED:
        raise refusal("none, or a damaged one") from None
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) > MAX_PARTS:
        raise ValueError(
            f"a .docx file must have at most {MAX_PARTS} parts. Received: {len(infos)}"
        )
    limit = len(content) + MAX_GROWTH
    size = sum(info.file_size for info in infos.values())
    if size > limit:
        raise ValueError(
            f"a .docx file of {len(content)} bytes must unpack to at most "
            f"{limit} bytes. Received: {size}"
        )
    if not any(re.fullmatch(r"word/document\d*\.xml", name) for name in infos):
        raise refusal(f"one without {MAIN}")
    return {name: (info, read_part(archive, info)) for name, info in infos.items()}


def declared_size(content: bytes) -> int:
    """Returns the bytes that translated parts claim to have, without unpacking them."""
    return sum(int.from_bytes(found[1], "little") for found in ENTRY.finditer(content))


def read_part(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Returns the content of a part."""
    if info.flag_bits & ENCRYPTED or info.compress_type not in COMPRESSIONS:
        raise refusal("one whose parts are encrypted, or not deflated")
    try:
        with archive.open(info) as part:
            # With a size it stops there, even if the part has more.
            return part.read(info.file_size)
    except DAMAGED:
        raise refusal("one with a damaged part") from None


def refusal(received: str) -> ValueError:
    return ValueError(
        f"a .docx file must be a zip archive with {MAIN}, not encrypted. "
        f"Received: {received}"
    )


def write_parts(parts: Parts, trees: dict[str, etree._Element]) -> bytes:
    """Returns the .docx file of parts, some of which are replaced by trees."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, (info, content) in parts.items():
            if name in trees:
                tree = trees[name].getroottree()
                content = etree.tostring(tree, encoding="UTF-8", standalone=True)
            archive.writestr(info, content)
    return file.getvalue()


def parse_xml(content: bytes) -> etree._Element:
    """Parses XML in UTF-8 or UTF-16 without reading or expanding anything else."""
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    parser = etree.XMLParser(
        # In others, such as EBCDIC, `<` is not the byte that is counted.
        encoding=None if is_utf16 else "utf-8",
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        raise refusal("one whose XML is not well-formed") from None
    if root.getroottree().docinfo.doctype:
        raise refusal("one whose XML has a document type")
    return root
