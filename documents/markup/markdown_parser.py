"""Finds the markup and texts of Markdown with markdown-it-py.

It supports GitHub's Markdown, with definition lists, mathematics between dollars,
admonitions, and what generators of sites add. The library reports the lines of a
block. The positions of inline markup are recorded while it parses.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Iterator

import markdown_it
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from documents.markup.html_scanner import read_html
from documents.markup.markup_tokens import HTML, Kind, Token, Value

LINE_END = re.compile(r"\r\n?|\n")
# Characters that may be markup.
SPECIAL = re.compile(r"[\\`*_\[\]|~<>&$#+=:!^-]")
# Those in the text of an image.
IMAGE_SPECIAL = re.compile(r"[\[\]\\`*_<&!$^|]")
# An image whose text has no markup and is not the name of its reference.
IMAGE = re.compile(r"!\[([^\[\]\\`*_<&!$^]+)\](?:\(|\[[^\]])")
# What generators of sites read: front matter, code between tags of Liquid or Hugo, and
# lines of one such tag, of attributes, or of a begin or end of a container.
GENERATORS = re.compile(
    r"\A(---|\+\+\+)\s.*?^(?:\1|\.\.\.)[ \t\r]*$"
    r"|^[ \t]*\{[{%][ <%-]*(highlight|comment)\b(?:[^{]|\{(?![{%]))*+"
    r"\{[{%][ <%-]*(?:end|/)\2[^{}\n]*\}\}?"
    r"|^[ \t]*(?:\{[:#.{%][^{}\n]*\}\}?|:::[^\n]*)[ \t\r]*$",
    re.DOTALL | re.MULTILINE,
)
OPTIONS = {"tasklists": True, "alerts": True, "strikethrough_single_tilde": True}


def read_markdown(source: str) -> Iterator[Token]:
    """Yields the tokens of a document."""
    source = GENERATORS.sub(hide, source)
    text = LINE_END.sub("\n", source)
    ends = [found.end() for found in LINE_END.finditer(source)]
    lines = [0, *ends, len(source)]
    done = 0
    for block in make_parser().parse(text):
        if block.map is None or not block.content:
            continue
        if block.type not in ("html_block", "inline"):
            continue
        is_html = block.type == "html_block"
        content = block.content.rstrip("\n") if is_html else block.content
        places = find_lines(content, block.map[0], source, lines, done)
        if places is None:
            continue
        start, end = places.locate(0), places.locate(len(content))
        yield Token(Kind.BREAK, done, start, is_block=True)
        if not is_html:
            yield from read_inline(block, content, places)
        for token in read_html(content) if is_html else ():
            is_text = token.kind is Kind.TEXT
            yield from places.move(token._replace(name=HTML) if is_text else token)
        done = end
    yield Token(Kind.BREAK, done, len(source), is_block=True)


def hide(found: re.Match) -> str:
    """Returns a block that Markdown leaves as it is, with the lines of a match."""
    text = found[0].strip()
    inner = re.sub(r"[^\r\n]", " ", text[2:-2])
    block = f"<?{inner}?>" if len(text) > 3 else "***"
    return found[0].replace(text, block)


def escape_markdown(text: str, is_first: bool) -> str:
    """Escapes all that may be markup; one of the first two words begins lists."""
    if is_first and text in (".", ")"):
        return "\\" + text
    return SPECIAL.sub(r"\\\g<0>", text)


@functools.cache
def make_parser() -> markdown_it.MarkdownIt:
    """Returns a parser whose inline tokens have their positions in `meta`."""
    parser = markdown_it.MarkdownIt("commonmark", OPTIONS)
    parser.enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.use(deflist_plugin)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    parser.use(admon_plugin)
    parser.disable(["fragments_join", "text_join"])
    parser.inline.tokenize = functools.partial(tokenize, parser)
    return parser


def tokenize(parser: markdown_it.MarkdownIt, state) -> None:
    """Replaces `ParserInline.tokenize`, and records `start` and `end`."""
    rules = parser.inline.ruler.getRules("")
    most = parser.options["maxNesting"]
    pending = state.pos  # Where the text begins that has no token yet.
    while state.pos < state.posMax:
        count = len(state.tokens)
        rules_now = rules if state.level < most else ()
        if not any(rule(state, False) for rule in rules_now):
            state.append_pending(state.src[state.pos])
            state.pos += 1
        if len(state.tokens) > count:
            record_positions(state.tokens[count:], pending, state.pos)
            pending = state.pos
    if state.pending:
        token = state.pushPending()
        token.meta.update(start=pending, end=state.posMax)


def record_positions(tokens: list, start: int, end: int) -> None:
    """Records the positions of the tokens of one rule, and of the text before."""
    for token in tokens:
        if "start" in token.meta:  # In a link.
            start = token.meta["end"]
            continue
        if token.type == "text":
            stop = start + len(token.content)
        elif token.type == "link_open" and token.markup != "autolink":
            stop = start + 1
        else:
            stop = end
        token.meta.update(start=start, end=stop)
        start = stop


class Places:
    """Converts positions in the content of a block to those in the source.

    The content consists of parts, each of which is the same in the source, or
    is one character: a line end or an escaped bar of a table.
    """

    def __init__(self):
        self._starts, self._sources = [], []

    def add(self, start: int, source: int) -> None:
        """Adds a part by its positions in the content and in the source."""
        self._starts.append(start)
        self._sources.append(source)

    def locate(self, place: int) -> int:
        part = bisect.bisect_right(self._starts, place) - 1
        return self._sources[part] + place - self._starts[part]

    def move(self, token: Token, offset: int = 0) -> Iterator[Token]:
        """Yields a token, which counts from an offset, as tokens of the source."""
        start, end = token.start + offset, token.end + offset
        first = bisect.bisect_right(self._starts, start)
        last = bisect.bisect_left(self._starts, end)
        cuts = [start, end]
        if token.kind is Kind.TEXT and end - start == len(token.text):
            cuts[1:1] = self._starts[first:last]
        spans = [(v.start + offset, v.end + offset, v.syntax) for v in token.values]
        values = tuple(
            Value(self.locate(begin), self.locate(stop), syntax)
            for begin, stop, syntax in spans
            # It is in one part.
            if bisect.bisect_right(self._starts, begin)
            == bisect.bisect_left(self._starts, stop)
        )
        for one, two in itertools.pairwise(cuts):
            part = token.text[one - start : two - start]
            yield token._replace(
                start=self.locate(one),
                end=self.locate(two),
                text=part if len(cuts) > 2 else token.text,
                values=values,
            )


def find_lines(
    content: str, first: int, source: str, lines: list[int], done: int
) -> Places | None:
    """Returns where the lines of a block are in the source; `None` if they differ.

    The source has its lines at `lines`; the block before ends at `done`.
    """
    places, start = Places(), 0
    for number, line in enumerate(content.split("\n"), start=first):
        if number >= len(lines) - 1:
            return None
        begin, end = max(lines[number], done), lines[number + 1]
        # More than one cell of a table may be in a line.
        in_table = begin > lines[number] or "|" in source[begin:end]
        find = source.find if in_table else source.rfind
        written = line
        place = find(line, begin, end)
        if place < 0:
            written = line.replace("|", "\\|")
            place = source.find(written, begin, end)
        if place < 0:
            return None
        if start:
            places.add(start - 1, done)  # The line end.
        places.add(start, place)
        done = place + len(written)
        if written != line:
            for count, bar in enumerate(re.finditer(r"\|", line)):
                places.add(start + bar.start(), place + bar.start() + count)
                places.add(start + bar.end(), place + bar.end() + count + 1)
        start += len(line) + 1
    return places


def read_inline(block, content: str, places: Places) -> Iterator[Token]:
    """Yields the tokens of a paragraph, a heading or a cell."""
    links = []  # Where the names of open links begin.
    for token in merge_halves(block.children):
        start, end = token.meta["start"], token.meta["end"]
        if token.type == "html_inline":
            found = next(read_html(content[start:end]))
            yield from places.move(found, start)
            continue
        found = make_token(token, start, end)
        if image := token.type == "image" and IMAGE.match(content, start):
            value = Value(*image.span(1), "markdown")
            found = found._replace(values=(value,))
        if found.name == "link" and found.kind is Kind.OPEN:
            links.append(end)
        elif found.name == "link" and found.kind is Kind.CLOSE:
            name = " ".join(content[links.pop() : start].split())
            if content[start:end] in ("]", "][]"):
                # A link that is named by its text keeps its name.
                found = found._replace(text=f"][{name}]")
        if start < end:
            yield from places.move(found)


def merge_halves(tokens: list) -> list:
    """Removes empty tokens: in an autolink, and of delimiters such as `**`."""
    merged, opening, autolink = [], None, False
    for token in tokens:
        if autolink:
            autolink = token.type != "link_close"
        elif token.type == "text" and not token.content:
            if merged and merged[-1].nesting < 0:
                merged[-1].meta["end"] = token.meta["end"]
            else:
                opening = token.meta["start"]
        else:
            if opening is not None:
                token.meta["start"], opening = opening, None
            autolink = token.markup == "autolink"
            merged.append(token)
    return merged


def make_token(token, start: int, end: int) -> Token:
    """Returns the token of an inline token of markdown-it."""
    name = token.type.rpartition("_")[0]
    match token.type:
        case "text" | "text_special":
            return Token(Kind.TEXT, start, end, token.content)
        case "softbreak":
            return Token(Kind.TEXT, start, end, " ")
        case "hardbreak":
            return Token(Kind.BREAK, start, end, is_block=True)
        case "code_inline" | "math_inline" | "math_inline_double":
            return Token(Kind.VERBATIM, start, end, token.content, name)
        case "link_open" if token.markup == "autolink":
            return Token(Kind.VERBATIM, start, end, token.attrs["href"], name)
    if token.nesting == 0:
        return Token(Kind.VOID, start, end, name=token.type)
    kind = Kind.OPEN if token.nesting > 0 else Kind.CLOSE
    return Token(kind, start, end, name=name)
