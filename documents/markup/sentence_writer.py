"""Writes the translation of a sentence with its tags.

What is as in the source is copied from it: a word that the translation keeps,
with its entities, and what stands between two words that are neighbours in
both, such as a line end.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from documents.markup.markup_tokens import Kind, Span
from documents.markup.tag_aware_alignment import Alignment, align_words
from documents.markup.tag_projection import Node, TagProjector
from documents.markup.tagged_sentences import Sentence


@dataclasses.dataclass
class Item:
    """A written word or leaf, from `start` to `end` in the translation."""

    start: int
    end: int
    source: int  # Index of its word in the sentence, or -1.
    plain: str  # Its text.
    written: str  # The same in the document, if it is among the same words.
    escaped: str  # The same in the document among any words.
    is_copy: bool  # Whether it is a word of the source.


class Escaping(NamedTuple):
    """How the words of a translation are escaped."""

    # The second argument is whether a word is one of the first two of a sentence.
    escape: Callable[[str, bool], str]
    copies_plain: bool = True  # Whether words as in the source are not escaped.


class Writer:
    """Writes a sentence, see `write_sentence`."""

    def __init__(
        self,
        sentence: Sentence,
        translation: str,
        alignment: Alignment,
        escaping: Escaping,
        copy: Callable[[int, int], str],
    ):
        self._sentence, self._translation = sentence, translation
        self._alignment, self._escaping, self._copy = alignment, escaping, copy
        # The tags before each word and the end, and the leaves at words.
        self._gaps = [[] for _ in range(len(alignment.words) + 1)]
        self._leaves, self._dropped = {}, set()
        self._written = {}  # The source of a closing tag, if it is another.
        self._nodes = {}  # By the index of their tag.
        self._words_of_leaves = {
            word for leaf in sentence.leaves for word in range(leaf.first, leaf.last)
        }

    def write(self) -> tuple[str, str]:
        """Returns the translation with and without the tags."""
        self._place(self._sentence.root)
        items, gaps = self._make_items()
        parts, plain = [], []
        for number, gap in enumerate(gaps):
            left = items[number - 1] if number else None
            right = items[number] if number < len(items) else None
            span = self._find_copied_gap(gap, left, right)
            if left:
                # Text of the source may be markup at another position.
                is_same = span and (right is None or right.is_copy)
                parts.append(left.written if is_same else left.escaped)
            if span:
                parts.append(self._copy(*span))
            else:
                parts.append(self._write_gap(gap, left, right))
            # Leaves that the translation lacks are text, too.
            marks = [self._sentence.marks[mark] for mark in gap]
            plain += [mark.text for mark in marks if mark.kind is Kind.VERBATIM]
            plain += [right.plain] if right else []
        return "".join(parts), " ".join(plain)

    def _find_copied_gap(
        self, gap: list[int], left: Item | None, right: Item | None
    ) -> Span | None:
        """Returns the span between two words in the source if it is the same."""
        sentence = self._sentence
        before = left.source if left else -1
        after = right.source if right else len(sentence.words)
        if (
            after != before + 1
            or (left and before < 0)
            or gap != sentence.gaps[after]
            or any(mark in self._written for mark in gap)
            or not self._has_same_blank(left, right)
        ):
            return None
        start, end = sentence.place
        if left:
            start = sentence.span_of(before)[1]
        if after < len(sentence.words):
            end = sentence.span_of(after)[0]
        return start, end

    def _place(self, node: Node) -> None:
        """Puts the tags in a node where they belong."""
        for child in node.children:
            first, last = child.run
            self._nodes[child.opening] = child
            if child.is_leaf and first < last:
                self._leaves[first] = child
                self._dropped.update(range(first + 1, last))
                continue
            if child.is_leaf and child.fixed:
                # It is outside of its tag, and is put inside again.
                self._dropped.update(range(*child.fixed))
            if child.opening is not None:
                self._gaps[first].append(child.opening)
            self._place(child)
            if child.closing is not None:
                self._gaps[last].append(child.closing)
                written = self._sentence.marks[child.closing].text
                if written and not self._is_same(child):
                    self._written[child.closing] = written

    def _is_same(self, node: Node) -> bool:
        """Returns whether the text in a tag is not changed."""
        found = self._alignment.words[slice(*node.run)]
        source = self._sentence.words[node.first : node.last]
        if not found or not source:
            return found == source
        text = self._translation[found[0].start : found[-1].end]
        return text == self._sentence.text[source[0].start : source[-1].end]

    def _make_items(self) -> tuple[list[Item], list[list[int]]]:
        """Returns the words that are written, and the tags around them."""
        items, gaps = [], [[]]
        for number in range(len(self._alignment.words)):
            gaps[-1] += self._gaps[number]
            if number in self._dropped:
                continue
            leaf, is_first = self._leaves.get(number), len(items) < 2
            item = self._make_leaf(leaf) if leaf else self._make_item(number, is_first)
            items.append(item)
            gaps.append([])
        gaps[-1] += self._gaps[-1]
        return items, gaps

    def _make_leaf(self, leaf: Node) -> Item:
        words = self._alignment.words[slice(*leaf.run)]
        text = self._sentence.marks[leaf.opening].text
        written = [self._write_mark(leaf.opening)] * 2
        return Item(words[0].start, words[-1].end, leaf.first, text, *written, True)

    def _make_item(self, number: int, is_first: bool) -> Item:
        sentence, escape = self._sentence, self._escaping.escape
        word, source = self._alignment.words[number], self._alignment.sources[number]
        text = self._translation[word.start : word.end]
        plain = text.upper() if sentence.is_uppercase else text
        written = escaped = escape(plain, is_first)
        # A leaf is written once, also if its word is there twice.
        is_other = source >= 0 and source not in self._words_of_leaves
        is_copy = is_other and sentence.is_copy(text, source)
        if is_copy:
            raw = self._copy(*sentence.span_of(source))
            if len(raw) > len(text):
                written = escaped = raw
            elif self._escaping.copies_plain:
                written = raw
        return Item(word.start, word.end, source, plain, written, escaped, is_copy)

    def _write_mark(self, mark: int) -> str:
        token = self._sentence.marks[mark]
        return self._written.get(mark) or self._copy(token.start, token.end)

    def _blank(self, left: Item | None, right: Item | None) -> str:
        """Returns the blank between two words of the translation."""
        between = self._translation[left.end : right.start] if left and right else ""
        if not between.strip():
            return between
        return " " if re.search(r"\s", between) else ""

    def _has_same_blank(self, left: Item | None, right: Item | None) -> bool:
        """Returns whether words have a blank between them as in the source."""
        if left is None or right is None:
            return True
        sentence = self._sentence
        start = sentence.words[left.source].end
        blank = sentence.text[start : sentence.words[right.source].start]
        found = self._blank(left, right)
        # A tokenizer makes blanks of no-break spaces.
        is_copy = left.is_copy or right.is_copy
        return found == blank or (found == " " and blank.isspace() and is_copy)

    def _write_gap(self, gap: list[int], left: Item | None, right: Item | None) -> str:
        """Writes tags, the blank before the first start tag, and blanks of edges."""
        blank, parts = self._blank(left, right), []
        has_both = bool(blank) or left is None
        is_written = not blank
        closed = self._count_closed(gap)
        for number, mark in enumerate(gap):
            node = self._nodes.get(mark)
            text = self._write_mark(mark)
            if node and node.stands_alone:
                if (left or parts) and not (parts and parts[-1].isspace()):
                    parts.append(blank or " ")
                blank = blank or " "
                is_written = not has_both or right is None
            elif number >= closed and not is_written and not (node and node.follows):
                parts.append(blank)
                is_written = True
            parts.append(text)
        before, after = self._sentence.edges
        parts = ["" if left else before, *parts, "" if is_written else blank]
        return "".join(parts) + ("" if right else after)

    def _count_closed(self, gap: list[int]) -> int:
        """Returns the number of tags up to the last end tag at the left."""
        kinds = [self._sentence.marks[mark].kind for mark in gap]
        first = kinds.index(Kind.OPEN) if Kind.OPEN in kinds else len(kinds)
        ends = [n + 1 for n in range(first) if kinds[n] is Kind.CLOSE]
        return max(ends, default=0)


def write_sentence(
    sentence: Sentence,
    translation: str,
    weights: np.ndarray | None,
    escaping: Escaping,
    copy: Callable[[int, int], str],
) -> tuple[str, str]:
    """Returns a translation with and without the tags of its sentence.

    The weights are those of `align_words`; `copy` returns a span of the document.
    """
    if not sentence.marks and copy(*sentence.place) == sentence.text:
        is_plain = escaping.escape(translation, False) == translation
        if escaping.copies_plain and is_plain:
            return translation, translation
    alignment = align_words(sentence, translation, weights)
    if weights is not None:
        sentence.root.run = (0, len(alignment.words))
        sides = sentence.words, alignment.words
        is_word = ([word.is_word for word in words] for words in sides)
        TagProjector(alignment.weights, *is_word).project(sentence.root)
    return Writer(sentence, translation, alignment, escaping, copy).write()
