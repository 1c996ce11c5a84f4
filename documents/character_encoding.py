"""Detects and applies the declared encoding of documents."""

import codecs
import re

DECLARED = {
    "html": re.compile(rb"""(?i)<meta[^>]{,200}?charset\s*=\s*["']?([\w.:-]+)"""),
    "xml": re.compile(rb"""\A<\?xml[^>]{,100}?encoding\s*=\s*["']([\w.:-]+)"""),
}
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# Python's codecs that no document is written in; some take quadratic time.
NO_ENCODINGS = (
    *("idna", "punycode", "raw-unicode-escape", "undefined"),
    *("unicode-escape", "utf-7"),
)
HEAD = 1024  # A declaration in HTML must be in the first bytes.
# Encodings that browsers use instead, by the Encoding Standard. A declaration
# that could be read is not in UTF-16.
READ_AS = {
    **dict.fromkeys(["iso8859-1", "ascii"], "cp1252"),
    **dict.fromkeys(["gb2312", "gbk"], "gb18030"),
    **{"shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs"},
    **dict.fromkeys(["utf-16", "utf-16-le", "utf-16-be"], "utf-8"),
}


def decode(data: bytes, format: str | None) -> tuple[str, str]:
    """Returns a document's text, without a byte order mark, and its encoding.

    The encoding is that of the mark, else the one that HTML and XML declare, else
    UTF-8.

    Raises:
        ValueError: If the encoding is unknown, or the bytes are invalid in it, or
            the text has NUL characters.
    """
    encoding = next((e for mark, e in MARKS.items() if data.startswith(mark)), "")
    declared = DECLARED.get(format)
    found = declared and declared.search(data[:HEAD])
    if not encoding and found:
        try:
            encoding = codecs.lookup(found[1].decode()).name
            if encoding in NO_ENCODINGS:
                raise LookupError
            b"a".decode(encoding, "ignore")  # `base64`, say, is a codec, too.
        except LookupError:
            raise ValueError(
                "the document must declare an encoding that Python knows. "
                f"Received: {found[1].decode()}"
            ) from None
        if format == "html":
            encoding = READ_AS.get(encoding, encoding)
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the document must be in {error.encoding}. Received: {error}"
        ) from None
    if "\0" in text:  # UTF-16 without a mark, or no text at all.
        raise ValueError("the document must be text. Received: NUL characters")
    if encoding == "utf-16-be":  # The codec keeps the mark.
        text = text.removeprefix("\ufeff")
    return text, encoding or "utf-8"


def encode(text: str, encoding: str, format: str | None) -> bytes:
    """Encodes a document, with references for characters that it lacks."""
    if encoding == "utf-16-be":  # The codec writes no mark.
        text = f"\ufeff{text}"
    errors = "xmlcharrefreplace" if format in DECLARED else "strict"
    return text.encode(encoding, errors)
