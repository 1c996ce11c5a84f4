"""Finds the markup and texts of Markdown with markdown-it-py.

It supports CommonMark with tables and strikethrough, and YAML front matter. The
library reports the lines of a block, but not the positions of inline markup. So
its rules are wrapped to record where they begin and end.
"""

import itertools
import re

import markdown_it
from markdown_it import rules_inline

from export.markup.html_parser import EventReader
from export.markup.markup_tokens import Event
from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from export.markup.markup_tokens import to_tokens

FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*$", re.M | re.S
)
# Characters of inline markup, and markup at the beginning of a line.
MARKS = re.compile(
    r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])"
    r"|&(?=#?\w+;)|\A(?:[-+>#=](?=[\s=#-]|\Z)|>)"
)
NUMBER = re.compile(r"\A(\d{1,9})([.)])(?=\s|\Z)")
RULES = {
    "text": rules_inline.text,
    "newline": rules_inline.newline,
    "escape": rules_inline.escape,
    "backticks": rules_inline.backtick,
    "strikethrough": rules_inline.strikethrough.tokenize,
    "emphasis": rules_inline.emphasis.tokenize,
    "link": rules_inline.link,
    "image": rules_inline.image,
    "autolink": rules_inline.autolink,
    "html_inline": rules_inline.html_inline,
    "entity": rules_inline.entity,
}


def read_markdown(source: str) -> list[Token]:
    """Returns the tokens of a document; HTML and code are not translated."""
    matter = FRONT_MATTER.match(source)
    start = matter.end() if matter else 0
    events = [Event(Kind.VOID, 0, is_block=True)]
    # The library replaces other line ends, which would shift positions.
    body = source[start:].replace("\r\n", " \n").replace("\r", "\n")
    lines = [
        start,
        *itertools.accumulate(
            map(len, body.splitlines(keepends=True)), initial=start
        ),
    ][1:]
    text = source[:start] + body
    cursor = start
    for token in make_parser().parse(body):
        if token.type == "inline" and token.content:
            places = find_lines(token, text, lines, cursor)
            if places:
                cursor = places[-1][1] + len(token.content) - places[-1][0]
                events += read_inline(token, places)
                events.append(Event(Kind.VOID, cursor, is_block=True))
    return list(to_tokens(events, len(source)))


def escape_markdown(text: str) -> str:
    """Escapes text."""
    text = MARKS.sub(lambda mark: "\\" + mark[0], text)
    return NUMBER.sub(r"\1\\\2", text)


def make_parser() -> markdown_it.MarkdownIt:
    """Returns a parser whose inline tokens have their positions."""
    parser = markdown_it.MarkdownIt("commonmark")
    parser.enable(["table", "strikethrough"])
    parser.disable(["fragments_join", "text_join"])
    for name, rule in RULES.items():
        parser.inline.ruler.at(name, recording_rule(rule))
    return parser


def recording_rule(rule):
    """Wraps a rule, which then records positions in `meta` of its tokens."""

    def run(state, silent):
        start, count = state.pos, len(state.tokens)
        has_text = bool(state.pending)
        found = rule(state, silent)
        if not found or silent:
            return found
        own = [t for t in state.tokens[count:] if "start" not in t.meta]
        if has_text and own and own[0].type == "text":
            own = own[1:]  # Text before it; it begins where another token ends.
        own = [t for t in own if t.type != "text" or rule in DELIMITERS]
        if rule is rules_inline.link:
            record_link(own, state, start)
        elif rule is rules_inline.autolink:
            own[0].meta.update(start=start, end=state.pos)
        else:
            for token in own:
                end = start + len(token.content)
                end = end if rule in DELIMITERS else state.pos
                token.meta.update(start=start, end=end)
                start = end
        return found

    return run


DELIMITERS = (RULES["emphasis"], RULES["strikethrough"])


def record_link(own, state, start):
    """Records the positions of a link's two ends, and how to write the second.

    A reference link that is named by its text keeps its name.
    """
    opening, closing = own[0], own[-1]
    opening.meta.update(start=start, end=start + 1)
    closing.meta["end"] = state.pos
    whole = state.src[start : state.pos]
    if whole.endswith("[]"):
        closing.meta["written"] = f"]{whole[:-2]}"
    elif state.pos == closing_bracket(state, start) + 1:
        closing.meta["written"] = f"]{whole}"


def closing_bracket(state, start):
    """Returns the position of the bracket that ends a link's text."""
    place, state.pos = state.pos, start
    found = state.md.helpers.parseLinkLabel(state, start)
    state.pos = place
    return found


def find_lines(token, text, lines, cursor):
    """Returns where the lines of an inline token begin, in it and in a text.

    `None` if the lines differ, as with tabs and escaped bars.
    """
    places, start = [], 0
    first, last = token.map
    for line, content in enumerate(token.content.split("\n"), start=first):
        if line >= len(lines) - 1:
            return None
        begin, end = max(lines[line], cursor), lines[line + 1]
        in_table = last == first + 1 and cursor > lines[line]
        find = text.find if in_table or "|" in text[begin:end] else text.rfind
        place = find(content, begin, end)
        if place < 0:
            return None
        places.append((start, place))
        start += len(content) + 1
    return places


def read_inline(token, places):
    """Yields the events of an inline token."""
    end, autolink = 0, None
    for child, after in itertools.pairwise([*token.children, None]):
        start = child.meta.get("start", end)
        if child.type == "text" and not child.content:
            # Half of a delimiter of two characters.
            if after is not None and after.nesting > 0:
                after.meta["start"] = start
            end = child.meta["end"]
            continue
        if autolink is not None:
            # Its text and its end are inside it.
            autolink = None if child.type == "link_close" else autolink
            continue
        event = make_event(child, locate(start, places))
        if child.markup == "autolink":
            autolink = event
            event.kind, event.text = Kind.VERBATIM, child.attrs["href"]
        yield event
        end = child.meta.get("end", start + len(child.content))


def locate(place, places):
    """Converts a position in an inline token to one in the source."""
    start, source = max(p for p in places if p[0] <= place)
    return source + place - start


def make_event(child, start):
    """Returns the event of an inline token."""
    match child.type:
        case "text" | "text_special":
            return Event(Kind.TEXT, start, text=child.content)
        case "softbreak":
            return Event(Kind.TEXT, start, text=" ")
        case "hardbreak":
            return Event(Kind.VOID, start, is_block=True)
        case "code_inline":
            return Event(Kind.VERBATIM, start, text=child.content)
        case "html_inline":
            event = EventReader(child.content).events[0]
            event.start = start
            return event
    if child.nesting == 0:
        return Event(Kind.VOID, start)
    kind = Kind.OPEN if child.nesting > 0 else Kind.CLOSE
    written = child.meta.get("written", "")
    return Event(kind, start, written, name=child.type.rpartition("_")[0])
