"""Splits a document into runs of text with their inline tags."""

import collections
import dataclasses
from collections.abc import Iterator

from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from text_processing.placeholders import find_untranslatable_spans

PLACEHOLDER = "placeholder"  # The name of a part without a tag.
BLANKS = " \t\n\r\f"


@dataclasses.dataclass(eq=False)
class Segment:
    """The text between two sentence breaks, with its inline tags.

    Attributes:
        text: The text, with one blank for any number.
        hidden: The same text with letters instead of untranslated parts, so
            that no sentence ends in them.
        places: For each character, its span in the document.
        marks: For each token that is not text, its span in the text and the
            token; sorted.
    """

    text: str = ""
    hidden: str = ""
    places: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    marks: list[tuple[int, int, Token]] = dataclasses.field(
        default_factory=list
    )

    def add(self, token: Token, source: str) -> None:
        """Adds a token of the document."""
        start = len(self.text)
        if token.kind is Kind.TEXT:
            self._write(token, token.text, source)
            return
        if token.kind is Kind.VERBATIM:
            self._write(token, token.text.strip(), source)
            self.hide(start, len(self.text))
        self.marks.append((start, len(self.text), token))

    def _write(self, token: Token, text: str, source: str) -> None:
        is_plain = source.startswith(text, token.start)
        for number, character in enumerate(text):
            at = token.start + number
            place = (at, at + 1) if is_plain else (token.start, token.end)
            if character not in BLANKS:
                self._put(character, place)
            elif self.text[-1:] != " ":
                self._put(" ", place)
            elif number:
                self.places[-1] = (self.places[-1][0], place[1])

    def _put(self, character: str, place: tuple[int, int]) -> None:
        self.text += character
        self.hidden += character
        self.places.append(place)

    def hide(self, start: int, end: int) -> None:
        """Replaces an untranslated part by letters."""
        letters = ("X" + "x" * (end - start - 1))[: end - start]
        self.hidden = self.hidden[:start] + letters + self.hidden[end:]

    def hide_placeholders(self) -> None:
        """Hides URLs and similar text, except those with a tag inside."""
        tags = [start for start, _, _ in self.marks]
        for start, end in find_untranslatable_spans(self.hidden):
            if not any(start < place < end for place in tags):
                part = Token(
                    Kind.VERBATIM,
                    self.places[start][0],
                    self.places[end - 1][1],
                    self.text[start:end],
                    PLACEHOLDER,
                )
                self.marks.append((start, end, part))
                self.hide(start, end)
        self.marks.sort(key=lambda mark: mark[2].start)

    def count_tags(self) -> collections.Counter:
        """Counts the tokens that are not text, by kind and name."""
        return collections.Counter(
            (token.kind, token.name)
            for _, _, token in self.marks
            if token.name != PLACEHOLDER
        )


def split_into_segments(tokens: list[Token], source: str) -> Iterator[Segment]:
    """Yields the segments of a document that have letters."""
    segment = Segment()
    for token in [*tokens, Token(Kind.BREAK, len(source), len(source))]:
        if token.kind is not Kind.BREAK:
            segment.add(token, source)
            continue
        if any(map(str.isalpha, segment.text)):
            segment.hide_placeholders()
            yield segment
        segment = Segment()
