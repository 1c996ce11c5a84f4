"""Aligns the words of a sentence and its translation, both split at tags.

A tag may begin or end in a word, as in `H<sub>2</sub>O`. Such words are split
there before tags are placed. The word of the translation is split, too, if it
begins or ends like the other up to the tag. Else it stays whole, and belongs to
the tag that has most of the other's letters.
"""

import bisect
import itertools
import re
from typing import NamedTuple

import numpy as np

from documents.markup.markup_tokens import Span
from documents.markup.tag_projection import Node
from documents.markup.tagged_sentences import Sentence
from documents.markup.word_alignment import (
    Word,
    find_words,
    kind_of,
    split_words,
    words_in,
)
from text_processing.placeholders import NUMBER, find_untranslatable_spans

AMOUNT = re.compile(rf"(?:[+−±-]|[€£$¥]\ ?)?({NUMBER})\D*")


class Alignment(NamedTuple):
    """The words of a translation."""

    words: list[Word]
    weights: np.ndarray | None  # `(words, words of the sentence)`, if it has tags.
    sources: list[int]  # The index of each word's word in the sentence, or -1.


def align_words(
    sentence: Sentence, translation: str, weights: np.ndarray | None
) -> Alignment:
    """Splits the words of a translation, and sets `fixed` of its leaves.

    The weights `(target words, source words)` have the words of `find_words`.
    Without weights, as without tags, words are aligned by their positions.
    """
    if weights is None:
        targets = find_words(translation)
        ratio = len(sentence.words) / max(1, len(targets))
        return Alignment(targets, None, [int(i * ratio) for i in range(len(targets))])
    return Aligner(sentence, translation, weights).align()


class Aligner:
    """Aligns the words of one sentence, see `align_words`."""

    def __init__(self, sentence: Sentence, translation: str, weights: np.ndarray):
        self._sentence, self._translation = sentence, translation
        self._weights = weights
        self._sources, self._targets = map(find_words, (sentence.text, translation))
        self._taken = np.zeros(len(translation), bool)  # Its characters of leaves.

    def align(self) -> Alignment:
        sentence, translation = self._sentence, self._translation
        spans = self._locate_leaves()
        parts = self._split_pairs()
        cuts = {place for span in spans.values() for place in span}
        cuts.update(place for pairs in parts for _, place in pairs)
        words = split_words(
            translation, self._targets, sorted(cuts), sorted(spans.values())
        )
        found = self._spread_weights(words)
        for pairs in parts:
            align_parts(found, sentence.words, words, pairs)
        begins = [word.start for word in words]
        for leaf, (start, _) in spans.items():
            row = bisect.bisect_left(begins, start)
            leaf.fixed = row, row + 1
            found[row] = 0
            found[row, leaf.first] = 1
        known = {sentence.text[start:end] for start, end, _ in sentence.words}
        signs = [not word.is_word for word in words]
        is_known = [translation[start:end] in known for start, end, _ in words]
        for leaf in sentence.leaves:
            if leaf not in spans and not sentence.words[leaf.first].is_word:
                # A full stop, say, is not what the model wrote for a symbol.
                found[np.logical_and(signs, is_known), leaf.first] = 0
        best = np.where(found.any(axis=1), found.argmax(axis=1), -1)
        return Alignment(words, found, best.tolist())

    def _locate_leaves(self) -> dict[Node, Span]:
        """Returns the spans of the leaves that occur in the translation.

        Among equal candidates the one with the most attention to the leaf is taken.
        """
        text, found = self._sentence.text, {}
        # The longest first, since `%d%s` contains `%d`.
        leaves = sorted(self._sentence.leaves, key=lambda leaf: leaf.start - leaf.end)
        for leaf in leaves:
            wholes = self._find_free(leaf_pattern(text, leaf.start, leaf.end))
            number = number_pattern(text[leaf.start : leaf.end])
            free = wholes or self._find_free(number)
            if not free:
                continue
            words = words_in(self._sources, leaf.start, leaf.end)
            best = free[0]
            if len(free) > 1:
                shares = self._weights[:, words].sum(axis=1)
                # Of equal ones, the one at the same share of the sentence.
                place = leaf.start * len(self._translation) / len(text)
                best = max(
                    free,
                    key=lambda span: (
                        shares[words_in(self._targets, *span)].mean(),
                        -abs(span[0] - place),
                    ),
                )
            if not wholes:
                best = self._extend_number(best, words)
            self._taken[slice(*best)] = True
            found[leaf] = best
        return found

    def _find_free(self, pattern: str) -> list[Span]:
        """Returns where the first group of a pattern matches, but for other leaves."""
        spans = [match.span(1) for match in re.finditer(pattern, self._translation)]
        return [span for span in spans if not self._taken[slice(*span)].any()]

    def _extend_number(self, span: Span, words: range) -> Span:
        """Extends a number by words beside it that attend to the amount's `words`."""

        def is_of_amount(number):
            return (
                0 <= number < len(self._targets)
                and not self._taken[slice(*self._targets[number][:2])].any()
                and self._weights[number].any()
                and int(self._weights[number].argmax()) in words
            )

        rows = words_in(self._targets, *span)
        first, last = rows.start, rows.stop
        while is_of_amount(first - 1):
            first -= 1
        while is_of_amount(last):
            last += 1
        start = min(span[0], self._targets[first].start)
        return start, max(span[1], self._targets[last - 1].end)

    def _split_pairs(self) -> list[list[Span]]:
        """Returns where to split the words whose translations are split, too.

        For each pair of such words: positions in the sentence and in the translation,
        from the beginnings of the words to their ends. A word that a leaf splits is
        left out unless it is the same in both.
        """
        sentence, found = self._sentence, []
        if sentence.words == self._sources or not self._targets:
            return found
        leaves = [leaf.start for leaf in sentence.leaves]
        begins = [word.start for word in sentence.words]
        for number, word in enumerate(self._sources):
            first = bisect.bisect_right(begins, word.start)
            last = bisect.bisect_left(begins, word.end)
            target = int(self._weights[:, number].argmax())
            is_mutual = int(self._weights[target].argmax()) == number
            if first == last or not is_mutual or self._weights[target, number] <= 0:
                continue
            start, end, _ = self._targets[target]
            old = sentence.text[word.start : word.end]
            new = self._translation[start:end]
            after = bisect.bisect_left(leaves, word.end)
            has_leaf = bisect.bisect_left(leaves, word.start) < after
            if has_leaf and old != new:
                continue
            pairs = [(word.start, start)]
            for begin in begins[first:last]:
                place = find_word_split(old, new, begin - word.start)
                if place is not None and start + place > pairs[-1][1]:
                    pairs.append((begin, start + place))
            if len(pairs) > 1:
                found.append([*pairs, (word.end, end)])
        return found

    def _spread_weights(self, target_parts: list[Word]) -> np.ndarray:
        """Returns the weights of parts of words; a source part's share is by length."""
        begins = [word.start for word in self._targets]
        rows = [bisect.bisect_right(begins, part.start) - 1 for part in target_parts]
        weights, source_parts = self._weights[rows], self._sentence.words
        if source_parts == self._sources:
            return weights
        found = np.zeros((len(target_parts), len(source_parts)))
        for column, part in enumerate(source_parts):
            for place in words_in(self._sources, part.start, part.end):
                word = self._sources[place]
                overlap = min(word.end, part.end) - max(word.start, part.start)
                share = overlap / (word.end - word.start)
                found[:, column] += weights[:, place] * share
        return found


def leaf_pattern(text: str, start: int, end: int) -> str:
    """Returns the pattern of a leaf, which has letters beside it if it had."""
    pattern = re.escape(text[start:end])
    if text[start].isalnum() and not text[start - 1 : start].isalnum():
        pattern = rf"(?<![^\W_]){pattern}"
    if text[end - 1].isalnum() and not text[end : end + 1].isalnum():
        pattern = rf"{pattern}(?![^\W_])"
    return rf"(?=({pattern}))"


def number_pattern(text: str) -> str:
    """Returns the pattern of the number of an amount, such as `5 €`, else of nothing.

    A model may write the unit or currency as a word.
    """
    found = AMOUNT.fullmatch(text)
    if not found or find_untranslatable_spans(text) != [(0, len(text))]:
        return r"(?!)"
    return rf"(?<![\w.,])({re.escape(found[1])})(?!\w|[.,]\d)"


def find_word_split(old: str, new: str, place: int) -> int | None:
    """Returns where to split a word that begins or ends like another one.

    Example:
        >>> (find_word_split("CO2-free", "CO2", 2), find_word_split("un", "in", 1))
        (2, 1)
        >>> find_word_split("Ana's", "Anna", 3) is None
        True
    """
    after = old[place]
    if not new.startswith(old[:place]):
        if not new.endswith(old[place:]):
            return None
        place += len(new) - len(old)
    if not 0 < place < len(new):
        return None
    # A letter is not parted from its mark unless it was.
    return place if new[place] == after or kind_of(new[place]) != "mark" else None


def align_parts(
    weights: np.ndarray, sources: list[Word], targets: list[Word], pairs: list[Span]
) -> None:
    """Sets the weights of the parts of a word and its translation in place."""
    rows = words_in(targets, pairs[0][1], pairs[-1][1])
    columns = words_in(sources, pairs[0][0], pairs[-1][0])
    shares = weights[rows][:, columns].sum(axis=1)
    weights[rows.start : rows.stop, columns.start : columns.stop] = 0
    for (first, start), (last, end) in itertools.pairwise(pairs):
        for row in words_in(targets, start, end):
            share = shares[row - rows.start] / (last - first)
            for column in words_in(sources, first, last):
                word = sources[column]
                weights[row, column] = share * (word.end - word.start)
