"""Writes a document with the translations of its sentences."""

import bisect
import collections
import functools
import html
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from documents.markup.html_scanner import read_cues, read_html_document
from documents.markup.markdown_parser import (
    IMAGE_SPECIAL,
    escape_markdown,
    read_markdown,
)
from documents.markup.markup_tokens import Edit, Token, Value, copy_with_edits, resolve
from documents.markup.segments import PLACEHOLDER_NAME, Segment, split_into_segments
from documents.markup.sentence_writer import Escaping, write_sentence
from documents.markup.tagged_sentences import Sentence
from documents.markup.xml_parser import read_xml


class Format(NamedTuple):
    """Functions that parse a document format and escape a word of its text."""

    read: Callable[[str], Iterable[Token]]
    escaping: Escaping


HTML_ESCAPING = Escaping(lambda text, is_first: html.escape(text, quote=False))
ATTRIBUTE_ESCAPING = Escaping(lambda text, is_first: html.escape(text))
IMAGE_ESCAPING = Escaping(lambda text, is_first: IMAGE_SPECIAL.sub(r"\\\g<0>", text))
SRT_ESCAPING = Escaping(lambda text, is_first: text)  # It has no escapes.
# Markdown is escaped only where parsing the translation shows the need.
UNESCAPED = Escaping(lambda text, is_first: text)
MARKDOWN_ESCAPING = Escaping(escape_markdown, copies_plain=False)
FORMATS = {
    "html": Format(read_html_document, HTML_ESCAPING),
    "xml": Format(read_xml, HTML_ESCAPING),
    "markdown": Format(read_markdown, UNESCAPED),
    "srt": Format(read_cues, SRT_ESCAPING),
    "vtt": Format(read_cues, HTML_ESCAPING),
}
MAX_REPARSES = 4  # How often a document of Markdown is parsed again.


class DocumentWriter:
    """Writes a document with its sentences, their translations and weights."""

    def __init__(
        self,
        source: str,
        aligned: list[tuple[Sentence, str, np.ndarray | None]],
        format: str,
    ):
        self._source, self._format = source, FORMATS[format]
        self._values, self._sentences = {}, {}
        for found in aligned:
            segment = found[0].segment
            group = self._values if segment.value else self._sentences
            group.setdefault(segment, []).append(found)
        self._escapings = {
            segment: HTML_ESCAPING if segment.is_html else self._format.escaping
            for segment in self._sentences
        }
        self._kept = set()

    def write(self) -> tuple[str, int]:
        """Returns the document, and the number of sentences that it keeps."""
        edits = [self._write_value(x.value, group) for x, group in self._values.items()]
        copy = functools.partial(copy_with_edits, self._source, edits)
        result, places = self._write_sentences(copy)
        # In other formats a tag is valid at every position.
        if self._format.escaping is UNESCAPED:
            for _ in range(MAX_REPARSES):
                if result == self._source or not self._escape_misread(result, places):
                    break
                result, places = self._write_sentences(copy)
        return result, sum(len(self._sentences[segment]) for segment in self._kept)

    def _write_value(self, value: Value, group: list) -> Edit:
        """Returns the edit of an attribute's value."""
        is_image = value.syntax == "markdown"
        escaping = IMAGE_ESCAPING if is_image else ATTRIBUTE_ESCAPING
        copy = functools.partial(copy_with_edits, self._source, [])
        edits = [(*x[0].place, write_sentence(*x, escaping, copy)[0]) for x in group]
        text = copy_with_edits(self._source, edits, value.start, value.end)
        if value.syntax == "unquoted" and re.search(r"[\s\"'=<>`]|^$", text):
            text = '"' + text.replace('"', "&quot;") + '"'
        return value.start, value.end, text

    def _write_sentences(self, copy: Callable) -> tuple[str, dict]:
        """Returns the document, and for each segment its span and its text."""
        parts, places, done, length = [], {}, 0, 0
        for segment, group in self._sentences.items():
            if segment in self._kept:
                continue
            plain, until, start = [], 0, None
            for sentence, *found in group:
                first, last = sentence.place
                escaping = self._escapings[segment]
                written, text = write_sentence(sentence, *found, escaping, copy)
                parts += [copy(done, first), written]
                length += len(parts[-2])
                start = length if start is None else start
                length += len(written)
                done = last
                plain += [segment.text[until : sentence.span[0]], text]
                until = sentence.span[1]
            plain.append(segment.text[until:])
            places[segment] = start, length, without_blanks("".join(plain))
        return "".join([*parts, copy(done, len(self._source))]), places

    def _escape_misread(self, result: str, places: dict) -> bool:
        """Escapes segments that no parser gives back, or keeps them if they are."""
        read = resolve(self._format.read(result))
        found = [x for x in split_into_segments(read, result) if x.value is None]
        starts = [segment.starts[0] for segment in found]
        ends = [segment.ends[-1] for segment in found]
        has_changed = False
        for segment, (start, end, text) in places.items():
            first = bisect.bisect_right(ends, start)
            last = bisect.bisect_left(starts, end)
            if (
                last - first == 1
                and without_blanks(found[first].text) == text
                and count_tags(found[first]) == count_tags(segment)
            ):
                continue
            has_changed = True
            if self._escapings[segment] is UNESCAPED:
                self._escapings[segment] = MARKDOWN_ESCAPING
            else:
                self._kept.add(segment)
        return has_changed


def count_tags(segment: Segment) -> collections.Counter:
    """Counts the tags of a segment, by kind and name."""
    tokens = [token for _, _, token in segment.marks]
    return collections.Counter(
        (each.kind, each.name) for each in tokens if each.name != PLACEHOLDER_NAME
    )


def without_blanks(text: str) -> str:
    return "".join(text.split())
