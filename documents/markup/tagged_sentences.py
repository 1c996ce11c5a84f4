"""A sentence of a document: the model's input and the tree of its tags."""

import bisect
import re
from collections.abc import Iterable

from documents.markup.markup_tokens import CHANGES, Kind, Span, copy_with_edits
from documents.markup.segments import Segment
from documents.markup.tag_tree import build_tree, locate_tags
from documents.markup.word_alignment import find_words, split_words
from text_processing.placeholders import PLACEHOLDERS

CLAUSE_ENDS = ",;:—…)"
# Characters of the longest sentence, which bounds the alignment's size.
MAX_CHARACTERS = 1000


class Sentence:
    """A sentence, from its span in the text of a segment, and its markup."""

    def __init__(
        self,
        segment: Segment,
        span: Span,
        source: str,
        marks: list,
        knows_placeholders: bool,
    ):
        start, end = self.span = span
        self.segment = segment
        begin, stop = (marks[0][0], marks[-1][1]) if marks else span
        # The blanks before and after its text.
        self.edges = (
            copy_blanks(segment, begin, start, source),
            copy_blanks(segment, end, stop, source),
        )
        marks = [(*(min(max(start, i), end) for i in m[:2]), m[2]) for m in marks]
        self.marks = [token for _, _, token in marks]  # Its tokens that are not text.
        first, last = segment.starts[start], segment.ends[end - 1]
        if marks:
            first = min(first, self.marks[0].start)
            last = max(last, self.marks[-1].end)
        self.place = first, last  # In the document, with its tags.
        # Where each character of `text` begins in the document, and where it ends.
        text, self.starts, self.ends, spans = write_text(
            segment, span, marks, knows_placeholders
        )
        # The tree of its tags, and the nodes that are put back unchanged, in order.
        self.root, self.leaves = build_tree(self.marks, spans, len(text), source)
        lowered = text[:1] + text[1:].lower()
        shown = visible(segment, start, end, marks)
        count = sum(word.isupper() and len(word) > 1 for word in shown.split())
        # Whether it has two words or more, all in capitals.
        self.is_uppercase = shown.isupper() and count > 1 and len(text) == len(lowered)
        self.text = lowered if self.is_uppercase else text  # The input of the model.
        cuts = sorted({place for span in spans for place in span})
        wholes = [(leaf.start, leaf.end) for leaf in self.leaves]
        self.words = split_words(self.text, find_words(self.text), cuts, wholes)
        # The indices of the tags before each word and the end.
        self.gaps = locate_tags(self.root, spans, [word.start for word in self.words])

    def span_of(self, number: int) -> Span:
        """Returns the span of a word in the document."""
        word = self.words[number]
        return self.starts[word.start], self.ends[word.end - 1]

    def is_copy(self, text: str, number: int) -> bool:
        """Returns whether a text is a word that can be copied."""
        start, end, _ = self.words[number]
        if text != self.text[start:end]:
            return False
        # It must not share an entity with the words beside it.
        starts, ends = self.starts, self.ends
        return (not start or ends[start - 1] <= starts[start]) and (
            end == len(ends) or ends[end - 1] <= starts[end]
        )


def make_sentences(
    segment: Segment, spans: list[Span], source: str, knows_placeholders: bool
) -> list[Sentence]:
    """Returns the sentences of a segment from their spans in its text."""
    sentences = []
    wholes = [(start, end) for start, end, _ in segment.marks if start < end]
    for first, last in join_spans(spans, wholes):
        for start, end in split_long(segment.hidden, first, last, wholes):
            marks = markup_of_span(segment, start, end)
            if any(map(str.isalpha, visible(segment, start, end, marks))):
                span = start, end
                sentences.append(
                    Sentence(segment, span, source, marks, knows_placeholders)
                )
    return sentences


def find_whole(wholes: list[Span], index: int) -> Span | None:
    """Returns the untranslated part, of sorted ones, that a cut would divide."""
    before = bisect.bisect_left(wholes, (index,)) - 1
    return wholes[before] if before >= 0 and index < wholes[before][1] else None


def join_spans(spans: list[Span], wholes: list[Span]) -> list[Span]:
    """Joins spans of sentences that were cut within an untranslated part."""
    joined = []
    for start, end in spans:
        if joined and find_whole(wholes, joined[-1][1]):
            start, _ = joined.pop()
        joined.append((start, end))
    return joined


def split_long(hidden: str, start: int, end: int, wholes: list[Span]) -> list[Span]:
    """Splits a span of a text so that each part has `MAX_CHARACTERS` or less.

    Only an untranslated part may be longer, which is a part of its own.
    """
    spans = []
    while end - start > MAX_CHARACTERS:
        middle, last = start + MAX_CHARACTERS // 2, start + MAX_CHARACTERS
        stop = max(hidden.rfind(f"{sign} ", middle, last) for sign in CLAUSE_ENDS)
        blank = stop + 1 if stop >= 0 else hidden.rfind(" ", start + 1, last + 1)
        if blank > 0:
            cut, begin = blank, blank + 1
        else:
            first, last = find_whole(wholes, last) or (last, last)
            cut = begin = first if first > start else last
        if cut >= end:
            break
        spans.append((start, cut))
        start = begin
    return [*spans, (start, end)]


def visible(segment: Segment, start: int, end: int, marks: list) -> str:
    """Returns the text of a range without untranslated parts."""
    edits = [(i, j, " ") for i, j, _ in marks if start <= i < j <= end]
    return copy_with_edits(segment.text, edits, start, end)


def markup_of_span(segment: Segment, start: int, end: int) -> list:
    """Returns the markup of a span, with the tags that blanks part from it.

    At its edges a sentence takes the start tags of elements that end in it or
    after it, and the end tags of those that begin in it or before it.
    """
    text, marks = segment.text, segment.marks
    begin, stop = start, end
    while begin and text[begin - 1].isspace():
        begin -= 1
    while stop < len(text) and text[stop].isspace():
        stop += 1
    first = bisect.bisect_left(marks, begin, key=lambda mark: mark[0])
    inner = bisect.bisect_right(marks, start, key=lambda mark: mark[1])
    outer = bisect.bisect_left(marks, end, key=lambda mark: mark[0])
    last = bisect.bisect_right(marks, stop, key=lambda mark: mark[1])
    inner -= count_to_unpaired(reversed(marks[first:inner]), Kind.OPEN)
    outer += count_to_unpaired(marks[outer:last], Kind.CLOSE)
    return marks[inner:outer]


def count_to_unpaired(marks: Iterable, kind: Kind) -> int:
    """Returns the number of tokens up to the last tag without its other half."""
    depth = most = count = 0
    for number, (_, _, token) in enumerate(marks, start=1):
        depth += CHANGES.get(token.kind, 0) * CHANGES[kind]
        if depth > most:
            most, count = depth, number
    return count


def copy_blanks(segment: Segment, start: int, end: int, source: str) -> str:
    """Returns the blanks of a range of a text, as in the document."""
    places = zip(segment.starts[start:end], segment.ends[start:end], strict=True)
    return "".join(source[slice(*place)] for place in places)


def write_text(
    segment: Segment, span: Span, marks: list, knows_placeholders: bool
) -> tuple[str, list[int], list[int], list[Span]]:
    """Returns the model's input, and where its parts are.

    They are where each of its characters begins and ends in the document, and
    the spans of the markup in the text.
    """
    done, end = span
    names = iter(PLACEHOLDERS if knows_placeholders else ())
    parts, length, starts, ends, spans = [], 0, [], [], []
    for first, last, token in [*marks, (end, end, None)]:
        parts.append(segment.text[done:first])
        starts += segment.starts[done:first]
        ends += segment.ends[done:first]
        begin = length = length + first - done
        if last > first:
            parts.append(next(names, segment.text[first:last]))
            length += len(parts[-1])
            starts += [token.start] * len(parts[-1])
            ends += [token.end] * len(parts[-1])
        spans.append((begin, length))
        done = last
    return "".join(parts), starts, ends, spans[:-1]


def split_in_half(sentence: Sentence) -> list[Span]:
    """Returns the spans of a sentence's halves, or none without a blank."""
    start, end = sentence.span
    blank = find_middle_blank(sentence.segment.hidden[start:end])
    return [] if blank is None else [(start, start + blank), (start + blank + 1, end)]


def find_middle_blank(text: str) -> int | None:
    """Returns the index of the blank where to split a sentence that is too long."""
    middle, quarter = len(text) / 2, len(text) / 4

    def cost(blank):
        distance = abs(blank - middle)
        return not (text[blank - 1] in CLAUSE_ENDS and distance < quarter), distance

    blanks = (found.start() for found in re.finditer(" ", text))
    return min(blanks, key=cost, default=None)
