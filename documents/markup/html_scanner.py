"""Finds the tags and texts of HTML, by the tokenizer of its standard, and of subtitles.

It builds no tree, so tags that are missing or wrongly nested stay unchanged.
Its time is linear, which that of Python's `html.parser` is not.
"""

import collections
import html
import re
from collections.abc import Iterator

from documents.markup.markup_tokens import (
    CHANGES,
    RUBY_TEXTS,
    Kind,
    Token,
    Value,
    is_untranslated,
)

# Elements that end a sentence. All other elements are inline.
BLOCK_NAMES = """
    address applet area article aside audio base basefont blockquote body br button
    canvas caption center col colgroup dd details dialog dir div dl dt embed
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head
    header hgroup hr html iframe legend li link main map menu meta nav noembed
    noframes noscript ol optgroup option p param picture plaintext pre script search
    section select slot source style summary table tbody td template textarea tfoot
    th thead title tr track ul video xmp
"""
BLOCKS = frozenset(BLOCK_NAMES.split())
# Elements without text or end tag.
NAMES_OF_EMPTY = """
    area base basefont br col embed frame hr img input link meta param source track
    wbr
"""
VOID_ELEMENTS = frozenset(NAMES_OF_EMPTY.split())
FOREIGN = frozenset(["math", "svg"])  # May be empty.
FOREIGN_INLINE = frozenset(["script", "style", "title"])  # Only there.
# Elements without tags in them; those of the second set have text.
RAW = frozenset(["script", "style", "xmp", "iframe", "noembed", "noframes"])
RAW_TEXT = frozenset(["textarea", "title"])
# Elements whose end tag may be left out, and the start tags that imply it.
NAMES_AFTER_P = """
    address article aside blockquote center details dialog dir div dl fieldset
    figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup main menu nav ol p
    pre search section table ul li dt dd td th tr
"""
AFTER_P = frozenset(NAMES_AFTER_P.split())
IMPLIED_ENDS = {
    "p": AFTER_P,
    "li": frozenset(["li"]),
    **dict.fromkeys(["dt", "dd"], frozenset(["dt", "dd"])),
    **dict.fromkeys(["td", "th"], frozenset(["td", "th", "tr", "tbody"])),
    "tr": frozenset(["tr", "tbody"]),
    "option": frozenset(["option", "optgroup"]),
    **dict.fromkeys(RUBY_TEXTS, RUBY_TEXTS),
}
# In these, start tags imply nothing about an element around them.
CONTAINERS = frozenset(["ul", "ol", "menu", "dir", "dl", "table", "select", "ruby"])
ENDED = frozenset([*IMPLIED_ENDS, *CONTAINERS])
TRANSLATED = frozenset(["alt", "title", "placeholder", "aria-label"])

BLANK = r"\t\n\f\r "
MARKUP = re.compile(r"<(?:(/?[a-zA-Z])|[!?]|/[^a-zA-Z])")
ATTRIBUTE_PATTERN = rf"""
    ([^{BLANK}/>][^{BLANK}/>=]*+)
    (?:[{BLANK}]*+=[{BLANK}]*+
        (?:"([^"]*+)"|'([^']*+)'|((?!["'])[^{BLANK}>]*+)))?+
"""
TAG = re.compile(
    rf"</?([a-zA-Z][^{BLANK}/>]*+)((?:[{BLANK}/]++|{ATTRIBUTE_PATTERN})*+)>", re.X
)
ATTRIBUTE = re.compile(ATTRIBUTE_PATTERN, re.X)
# Browsers do not see it; it may have a `>`.
PHP = re.compile(r"<\?(?:php\b|=)(?:[^<?]|\?(?!>))*+\?>")
COMMENT_END = re.compile(r"(?<=<!--)-?>|--!?>")
ENTITY = re.compile(r"&(?:#(?:[0-9]++|[xX][0-9a-fA-F]++)|[a-zA-Z][a-zA-Z0-9]*+);?")
# Tags of subtitles: those of HTML, times as in WebVTT, and commands of Advanced
# SubStation Alpha. The pronunciation of a word, `<rt>`, is not translated.
CUE_TAG = (
    r"<rt[^<>\n]*+>[^<>\n]*+</rt>|</?[a-zA-Z][^<>\n]*+>|<[\d:.]++>"
    r"|\{\\[^{}\n]*+\}"
)
CUE_MARKUP = re.compile(rf"{CUE_TAG}|\n")
CUE_TAG_NAME = re.compile(r"</?([a-zA-Z][\w-]*)[^<>]*+>")


def read_html_document(source: str) -> Iterator[Token]:
    """Yields the tokens of a document, with the end tags that it leaves out.

    They have no length. An untranslated element ends where a browser ends it.
    """
    opened = []  # Names of open elements, those in `ENDED`.
    counts = collections.Counter()  # Of these names, for linear time.
    for token in read_html(source):
        name = token.name
        kept = len(opened)  # How many of them stay open.
        if token.kind is Kind.OPEN:
            for place in reversed(range(len(opened))):
                if opened[place] in CONTAINERS:
                    break
                if name in IMPLIED_ENDS[opened[place]]:
                    kept = place
        elif token.kind is Kind.CLOSE and counts[name]:
            while opened[kept - 1] != name:
                kept -= 1
        elif token.kind is Kind.CLOSE and name in AFTER_P:
            kept -= opened[-1:] == ["p"]
        for left_out in reversed(opened[kept:]):
            place, is_block = token.start, left_out in BLOCKS
            yield Token(Kind.CLOSE, place, place, name=left_out, is_block=is_block)
            counts[left_out] -= 1
        del opened[kept:]
        if token.kind is Kind.CLOSE and opened[-1:] == [name]:
            opened.pop()
            counts[name] -= 1
        elif token.kind is Kind.OPEN and name in ENDED:
            opened.append(name)
            counts[name] += 1
        yield token


def read_html(source: str) -> Iterator[Token]:
    """Yields the tokens of a document or of a part of one."""
    place = done = foreign = 0
    while found := MARKUP.search(source, place):
        start = found.start()
        tag = TAG.match(source, start) if found[1] else None
        if tag:
            place = tag.end()
        elif found[1]:
            place = len(source)  # The tag does not end.
        else:
            place = end_of_declaration(source, start, foreign)
        yield from split_at_entities(source, done, start)
        done = place
        if tag is None:
            is_doctype = source[start + 2 : start + 3].lower() == "d"
            is_block = is_doctype or not source.endswith(">", start, place)
            yield Token(Kind.VOID, start, place, is_block=is_block)
            continue
        token = read_tag(source, tag)
        if foreign and token.name in FOREIGN_INLINE:
            token = token._replace(is_block=False)
        yield token
        if token.name in FOREIGN:
            foreign = max(0, foreign + CHANGES.get(token.kind, 0))
        if token.kind is Kind.OPEN and not foreign:
            if token.name in RAW or token.name in RAW_TEXT:
                end_tag = re.compile(rf"(?i)</{token.name}(?=[{BLANK}/>])")
                ended = end_tag.search(source, place)
                place = ended.start() if ended else len(source)
            elif token.name == "plaintext":
                place = len(source)
            if token.name in RAW and done < place:
                yield Token(Kind.VOID, done, place, is_block=True)
                done = place
    yield from split_at_entities(source, done, len(source))


def end_of_declaration(source: str, start: int, foreign: int) -> int:
    """Returns the end of a comment or of another token that is no tag."""
    if source.startswith("<!--", start):
        found = COMMENT_END.search(source, start + 4)
        return found.end() if found else len(source)
    if foreign and source.startswith("<![CDATA[", start):
        end = source.find("]]>", start)
        return end + 3 if end >= 0 else len(source)
    if code := PHP.match(source, start):
        return code.end()
    return source.find(">", start) + 1 or len(source)


def read_tag(source: str, found: re.Match) -> Token:
    """Returns the token of a tag from the match of `TAG`."""
    name, inner = found[1].lower(), found[2]
    start, end = found.span()
    is_block = name in BLOCKS
    if source.startswith("/", start + 1):
        return Token(Kind.CLOSE, start, end, name=name, is_block=is_block)
    attributes, values = read_attributes(source, name, found)
    # HTML has no other empty elements: `<p/>` is a start tag.
    is_empty = inner.endswith("/") and (name in FOREIGN or "-" in name)
    kind = Kind.VOID if name in VOID_ELEMENTS or is_empty else Kind.OPEN
    keeps = is_untranslated(name, attributes) if kind is Kind.OPEN else None
    return Token(kind, start, end, "", name, is_block, keeps, tuple(values))


def read_attributes(
    source: str, name: str, tag: re.Match
) -> tuple[dict[str, str], list[Value]]:
    """Returns the attributes of a tag, and the values that are translated."""
    attributes, spans = {}, {}
    for found in ATTRIBUTE.finditer(source, *tag.span(2)):
        key = found[1].lower()
        if found.lastindex > 1 and key not in attributes:
            span = found.span(found.lastindex)
            attributes[key] = html.unescape(source[slice(*span)])
            syntax = "quoted" if found.lastindex < 4 else "unquoted"
            spans[key] = Value(*span, syntax)
    names = TRANSLATED
    if name == "meta":
        is_description = attributes.get("name", "").lower() == "description"
        names = {"content"} if is_description else ()
    values = [spans[key] for key in spans if key in names]
    is_kept = is_untranslated(name, attributes, frozenset())
    return attributes, [] if is_kept else values


def split_at_entities(source: str, start: int, end: int) -> Iterator[Token]:
    """Yields the tokens of a text: parts of the source, and entities."""
    for found in ENTITY.finditer(source, start, end):
        text = html.unescape(found[0])
        if text == found[0]:
            continue
        first, last = found.span()
        if start < first:
            yield Token(Kind.TEXT, start, first, source[start:first])
        yield Token(Kind.TEXT, first, last, text)
        start = last
    if start < end:
        yield Token(Kind.TEXT, start, end, source[start:end])


def read_cues(source: str) -> Iterator[Token]:
    """Yields the tokens of the texts of cues, one speech a line."""
    done = 0
    for found in CUE_MARKUP.finditer(source):
        start, end = found.span()
        yield from split_at_entities(source, done, start)
        if name := CUE_TAG_NAME.fullmatch(source, start, end):
            kind = Kind.CLOSE if source.startswith("</", start) else Kind.OPEN
            yield Token(kind, start, end, name=name[1].lower())
        else:
            kind = Kind.BREAK if found[0] == "\n" else Kind.VOID
            yield Token(kind, start, end)
        done = end
    yield from split_at_entities(source, done, len(source))
