"""Finds the tags and texts of HTML with Python's parser.

It builds no tree, so tags that are missing or wrongly nested stay unchanged.
"""

import html
import html.parser
import itertools
import re

from export.markup.markup_tokens import Event
from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from export.markup.markup_tokens import is_untranslated
from export.markup.markup_tokens import to_tokens

# Elements that end a sentence. All other elements are inline.
NAMES = """
    address applet area article aside audio base basefont blockquote body br
    button canvas caption center col colgroup dd details dialog dir div dl dt
    embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5
    h6 head header hgroup hr html iframe legend li link main map menu meta nav
    noembed noframes noscript ol optgroup option p param picture plaintext pre
    rp rt script search section select slot source style summary table tbody td
    template textarea tfoot th thead title tr track ul video xmp
"""
BLOCKS = frozenset(NAMES.split())
# Elements without text or end tag.
NAMES_OF_EMPTY = """
    area base basefont br col embed frame hr img input link meta param source
    track wbr
"""
EMPTY = frozenset(NAMES_OF_EMPTY.split())
FOREIGN = frozenset(["math", "svg"])  # May be empty.
# Text at which the parser gives up.
TAG = re.compile(r"<[a-zA-Z/!?]")


def read_html(source: str) -> list[Token]:
    """Returns the tokens of a document or of a part of one."""
    return list(to_tokens(EventReader(source).events, len(source)))


def escape_html(text: str) -> str:
    """Escapes text."""
    return html.escape(text, quote=False)


class EventReader(html.parser.HTMLParser):
    """Records the events of a document and their positions.

    Args:
        source: The document.

    Attributes:
        events: The events, in order.
    """

    def __init__(self, source: str):
        super().__init__(convert_charrefs=False)
        lines = source.split("\n")
        self._lines = [
            0,
            *itertools.accumulate(len(line) + 1 for line in lines),
        ]
        self._source = source
        self.events = []
        self.feed(source)
        self.close()

    def _note(self, kind: Kind, **what) -> None:
        line, column = self.getpos()
        start = self._lines[line - 1] + column
        self.events.append(Event(kind, start, **what))

    def handle_starttag(self, tag, attrs):
        kind = Kind.VOID if tag in EMPTY else Kind.OPEN
        keeps = is_untranslated(tag, dict(reversed(attrs)))
        self._note(kind, name=tag, is_block=tag in BLOCKS, keeps=keeps)

    def handle_startendtag(self, tag, attrs):
        if tag in EMPTY | FOREIGN or "-" in tag:
            self._note(Kind.VOID, name=tag, is_block=tag in BLOCKS)
        else:
            # HTML has no such end tag; it is a start tag.
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        self._note(Kind.CLOSE, name=tag, is_block=tag in BLOCKS)

    def handle_data(self, data):
        if self.cdata_elem is None and TAG.search(data):
            self._note(Kind.VOID, is_block=True)
            return
        self._note(Kind.TEXT, text=data)
        # Text that the parser omits after it.
        event = self.events[-1]
        self.events.append(Event(Kind.VOID, event.start + len(data)))

    def handle_entityref(self, name):
        self._note(Kind.TEXT)
        event = self.events[-1]
        end = event.start + 1 + len(name)
        end += self._source.startswith(";", end)
        event.text = html.unescape(self._source[event.start : end])

    def handle_charref(self, name):
        self.handle_entityref(f"#{name}")

    def handle_comment(self, data):
        self._note(Kind.VOID)

    def handle_decl(self, decl):
        self._note(Kind.VOID, is_block=True)

    def handle_pi(self, data):
        self._note(Kind.VOID)

    def unknown_decl(self, data):
        self._note(Kind.VOID)
