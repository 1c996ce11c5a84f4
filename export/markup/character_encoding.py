"""Detects and applies the declared encoding of documents."""

import codecs
import re

DECLARED = {
    "html": re.compile(
        rb"""(?i)<meta[^>]{,200}?charset\s*=\s*["']?([\w.:-]+)"""
    ),
    "xml": re.compile(rb"""\A<\?xml[^>]{,100}?encoding\s*=\s*["']([\w.:-]+)"""),
}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
HEAD = 1024  # Bytes in which a declaration must be, in HTML.
# What browsers read instead, by the Encoding Standard.
READ_AS = {"iso8859-1": "cp1252", "ascii": "cp1252"}


def decode(data: bytes, format: str) -> tuple[str, str]:
    """Reads a document.

    Args:
        data: Its bytes.
        format: As of `translate_markup`.

    Returns:
        The text, without a byte order mark, and the name of the encoding:
        by that mark, else by what the document declares, else UTF-8.

    Raises:
        ValueError: If there is no such encoding, or the bytes are not in it.
    """
    encoding = next(
        (e for mark, e in MARKS.items() if data.startswith(mark)), ""
    )
    declared = DECLARED.get(format)
    found = declared and declared.search(data[:HEAD])
    if not encoding and found:
        try:
            encoding = codecs.lookup(found[1].decode()).name
        except LookupError:
            raise ValueError(
                "the document must declare an encoding that Python knows. "
                f"Received: {found[1].decode()}"
            ) from None
        if format == "html":
            encoding = READ_AS.get(encoding, encoding)
    try:
        return data.decode(encoding or "utf-8"), encoding or "utf-8"
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the document must be in {error.encoding}. Received: {error}"
        ) from None


def encode(text: str, encoding: str, format: str) -> bytes:
    """Writes a document; what its encoding lacks is a reference in it."""
    errors = "strict" if format == "markdown" else "xmlcharrefreplace"
    return text.encode(encoding, errors)
