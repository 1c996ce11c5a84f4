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
from documents.markup.word_alignment import Word, find_words, kind_of, split_words
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
    targets = find_words(translation)
    if weights is None:
        ratio = len(sentence.words) / max(1, len(targets))
        return Alignment(targets, None, [int(i * ratio) for i in range(len(targets))])
    sources = find_words(sentence.text)
    spans = locate_leaves(sentence, translation, targets, sources, weights)
    parts = split_pairs(sentence, translation, targets, sources, weights)
    cuts = {place for span in spans.values() for place in span}
    cuts.update(place for pairs in parts for _, place in pairs)
    words = split_words(translation, targets, sorted(cuts), sorted(spans.values()))
    found = spread_weights(weights, targets, words, sources, sentence.words)
    for pairs in parts:
        align_parts(found, sentence.words, words, pairs)
    begins = [word.start for word in words]
    for leaf, (start, _) in spans.items():
        row = bisect.bisect_left(begins, start)
        leaf.fixed = row, row + 1
        found[row] = 0
        found[row, leaf.first] = 1
    known = {sentence.text[start:end] for start, end, _ in sentence.words}
    is_known = [
        not is_word and translation[start:end] in known for start, end, is_word in words
    ]
    for leaf in sentence.leaves:
        if leaf not in spans and not sentence.words[leaf.first].is_word:
            # A full stop, say, is not what the model wrote for a symbol.
            found[is_known, leaf.first] = 0
    best = np.where(found.any(axis=1), found.argmax(axis=1), -1)
    return Alignment(words, found, best.tolist())


def locate_leaves(
    sentence: Sentence,
    translation: str,
    targets: list[Word],
    sources: list[Word],
    weights: np.ndarray,
) -> dict[Node, Span]:
    """Returns the spans of the leaves that occur in a translation.

    Among equal candidates the one with the most attention to the leaf is taken.
    """
    found, left, taken = {}, {}, np.zeros(len(translation), bool)
    # The longest first, since `%d%s` contains `%d`.
    for leaf in sorted(sentence.leaves, key=lambda leaf: leaf.start - leaf.end):
        pattern = leaf_pattern(sentence.text, leaf.start, leaf.end)
        if pattern not in left:
            left[pattern] = [
                match.span(1) for match in re.finditer(rf"(?=({pattern}))", translation)
            ]
        free = [s for s in left[pattern] if not taken[slice(*s)].any()]
        is_whole = bool(free)
        if not free:
            number = number_pattern(sentence.text[leaf.start : leaf.end])
            spans = [m.span() for m in re.finditer(number, translation)]
            free = [s for s in spans if not taken[slice(*s)].any()]
        if not free:
            continue
        words = words_in(sources, leaf)
        best = free[0]
        if len(free) > 1:
            shares = weights[:, words].sum(axis=1)
            # Of equal ones, the one at the same share of the sentence.
            place = leaf.start * len(translation) / len(sentence.text)
            best = max(
                free,
                key=lambda span: (
                    shares[words_in(targets, Word(*span, True))].mean(),
                    -abs(span[0] - place),
                ),
            )
        if not is_whole:
            best = include_unit(best, targets, weights, words, taken)
        taken[slice(*best)] = True
        found[leaf] = best
    return found


def leaf_pattern(text: str, start: int, end: int) -> str:
    """Returns the pattern of a leaf, which has letters beside it if it had."""
    pattern = re.escape(text[start:end])
    if text[start].isalnum() and not text[start - 1 : start].isalnum():
        pattern = rf"(?<!\w){pattern}"
    if text[end - 1].isalnum() and not text[end : end + 1].isalnum():
        pattern = rf"{pattern}(?!\w)"
    return pattern


def number_pattern(text: str) -> str:
    """Returns the pattern of the number of an amount, such as `5 €`.

    A model may write the unit or currency as a word. Of any other text the
    pattern matches nothing.
    """
    found = AMOUNT.fullmatch(text)
    if not found or find_untranslatable_spans(text) != [(0, len(text))]:
        return r"(?!)"
    return rf"(?<![\w.,]){re.escape(found[1])}(?!\w|[.,]\d)"


def include_unit(
    span: Span,
    targets: list[Word],
    weights: np.ndarray,
    words: range,
    taken: np.ndarray,
) -> Span:
    """Extends a number by words beside it that attend to the amount's `words`.

    Characters of the translation that are `taken` belong to another part.
    """

    def is_of_amount(number):
        return (
            0 <= number < len(targets)
            and not taken[slice(*targets[number][:2])].any()
            and weights[number].any()
            and int(weights[number].argmax()) in words
        )

    rows = words_in(targets, Word(*span, True))
    first, last = rows.start, rows.stop
    while is_of_amount(first - 1):
        first -= 1
    while is_of_amount(last):
        last += 1
    start = min(span[0], targets[first].start)
    return start, max(span[1], targets[last - 1].end)


def split_pairs(
    sentence: Sentence,
    translation: str,
    targets: list[Word],
    sources: list[Word],
    weights: np.ndarray,
) -> list[list[Span]]:
    """Returns where to split the words whose translations are split, too.

    For each pair of such words: positions in the sentence and in the translation,
    from the beginnings of the words to their ends. A word that a leaf splits is
    left out unless it is the same in both.
    """
    found = []
    if sentence.words == sources or not targets:
        return found
    leaves = [leaf.start for leaf in sentence.leaves]
    begins = [word.start for word in sentence.words]
    for number, word in enumerate(sources):
        first = bisect.bisect_right(begins, word.start)
        last = bisect.bisect_left(begins, word.end)
        target = int(weights[:, number].argmax())
        is_mutual = int(weights[target].argmax()) == number
        if first == last or not is_mutual or weights[target, number] <= 0:
            continue
        start, end = targets[target].start, targets[target].end
        old = sentence.text[word.start : word.end]
        new = translation[start:end]
        has_leaf = bisect.bisect_left(leaves, word.start) < bisect.bisect_left(
            leaves, word.end
        )
        if has_leaf and old != new:
            continue
        pairs = [(word.start, start)]
        for begin in begins[first:last]:
            place = find_same_place(old, new, begin - word.start)
            if place is not None and start + place > pairs[-1][1]:
                pairs.append((begin, start + place))
        if len(pairs) > 1:
            found.append([*pairs, (word.end, end)])
    return found


def find_same_place(old: str, new: str, place: int) -> int | None:
    """Returns where to split a word that begins or ends like another one.

    Example:
        >>> (find_same_place("CO2-free", "CO2", 2), find_same_place("un", "in", 1))
        (2, 1)
        >>> find_same_place("Ana's", "Anna", 3) is None
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
    rows = words_in(targets, Word(pairs[0][1], pairs[-1][1], True))
    columns = words_in(sources, Word(pairs[0][0], pairs[-1][0], True))
    shares = weights[rows][:, columns].sum(axis=1)
    weights[rows.start : rows.stop, columns.start : columns.stop] = 0
    for (first, start), (last, end) in itertools.pairwise(pairs):
        same = words_in(sources, Word(first, last, True))
        for row in words_in(targets, Word(start, end, True)):
            share = shares[row - rows.start] / (last - first)
            for column in same:
                word = sources[column]
                weights[row, column] = share * (word.end - word.start)


def spread_weights(
    weights: np.ndarray,
    targets: list[Word],
    target_parts: list[Word],
    sources: list[Word],
    source_parts: list[Word],
) -> np.ndarray:
    """Returns the weights of parts of words; a source part's share is by length."""
    if target_parts != targets:
        begins = [word.start for word in targets]
        rows = [bisect.bisect_right(begins, part.start) - 1 for part in target_parts]
        weights = weights[rows]
    if source_parts == sources:
        return weights.copy()
    found = np.zeros((len(target_parts), len(source_parts)))
    for column, part in enumerate(source_parts):
        for place in words_in(sources, part):
            word = sources[place]
            overlap = min(word.end, part.end) - max(word.start, part.start)
            share = overlap / (word.end - word.start)
            found[:, column] += weights[:, place] * share
    return found


def words_in(words: list[Word], span: Word | Node) -> range:
    """Returns the indices of the words that overlap a span."""
    first = bisect.bisect_right(words, span.start, key=lambda word: word.end)
    last = bisect.bisect_left(words, span.end, key=lambda word: word.start)
    return range(first, last)
