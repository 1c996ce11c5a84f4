"""Aligns the words of a sentence and its translation, both split at tags.

A tag may begin or end in a word, as in `H<sub>2</sub>O`. Such words are split
there before tags are placed. The word of the translation is split, too: at the
same characters if it is the same word, else at proportional ones.
"""

import bisect
import re
from typing import NamedTuple

import numpy as np

from export.markup.tag_projection import Node
from export.markup.tagged_sentences import Sentence
from export.markup.word_alignment import Word
from export.markup.word_alignment import find_words
from export.markup.word_alignment import kind_of
from export.markup.word_alignment import split_words


class Alignment(NamedTuple):
    """The words of a translation.

    Attributes:
        words: The words.
        weights: Float array `(words, words of the sentence)`; `None` without
            tags.
        sources: For each word, the index of its word in the sentence, or -1.
    """

    words: list[Word]
    weights: np.ndarray | None
    sources: list[int]


def align_words(
    sentence: Sentence, translation: str, weights: np.ndarray | None
) -> Alignment:
    """Splits the words of a translation, and sets `fixed` of its leaves.

    Args:
        sentence: The sentence.
        translation: Its translation.
        weights: Float array `(target words, source words)`, with the words of
            `find_words`; `None` if the sentence has no tags. Its words are then
            aligned by their positions.
    """
    targets = find_words(translation)
    if weights is None:
        ratio = len(sentence.words) / max(1, len(targets))
        places = range(len(targets))
        return Alignment(targets, None, [int(i * ratio) for i in places])
    sources = find_words(sentence.text)
    spans = locate_leaves(sentence, translation, targets, sources, weights)
    parts = split_pairs(sentence, translation, targets, sources, weights)
    cuts = {place for span in spans.values() for place in span}
    cuts.update(place for *_, places in parts for place in places)
    words = split_words(
        translation, targets, sorted(cuts), sorted(spans.values())
    )
    found = spread_weights(weights, targets, words, sources, sentence.words)
    for target, source, _ in parts:
        rows = words_in(words, targets[target])
        columns = words_in(sentence.words, sources[source])
        if len(rows) == len(columns):
            share = weights[target, source]
            found[rows.start : rows.stop, columns.start : columns.stop] = (
                np.eye(len(rows)) * share
            )
    begins = [word.start for word in words]
    for leaf, (start, _) in spans.items():
        row = bisect.bisect_left(begins, start)
        leaf.fixed = row, row + 1
        found[row] = 0
        found[row, leaf.first] = 1
    best = np.where(found.any(axis=1), found.argmax(axis=1), -1)
    return Alignment(words, found, best.tolist())


def locate_leaves(
    sentence: Sentence,
    translation: str,
    targets: list[Word],
    sources: list[Word],
    weights: np.ndarray,
) -> dict[Node, tuple[int, int]]:
    """Returns the spans of the leaves that occur in a translation.

    Among equal candidates the one with the most attention to the leaf is taken.
    """
    found, left, taken = {}, {}, np.zeros(len(translation), bool)
    for leaf in sentence.leaves:
        pattern = leaf_pattern(sentence.text, leaf.start, leaf.end)
        if pattern not in left:
            left[pattern] = [
                match.span(1)
                for match in re.finditer(rf"(?=({pattern}))", translation)
            ]
        free = [s for s in left[pattern] if not taken[slice(*s)].any()]
        if not free:
            continue
        if len(free) > 1:
            shares = weights[:, words_in(sources, leaf)].sum(axis=1)
            # Of equal ones, the one at the same share of the sentence.
            place = leaf.start * len(translation) / len(sentence.text)
            best = max(
                free,
                key=lambda span: (
                    mean_share(shares, targets, span),
                    -abs(span[0] - place),
                ),
            )
        else:
            best = free[0]
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


def mean_share(
    shares: np.ndarray, targets: list[Word], span: tuple[int, int]
) -> float:
    """Returns the mean attention of the words of a span."""
    return shares[words_in(targets, Word(*span, True))].mean()


def split_pairs(
    sentence: Sentence,
    translation: str,
    targets: list[Word],
    sources: list[Word],
    weights: np.ndarray,
) -> list[tuple[int, int, list[int]]]:
    """Returns the words that tags split, and where to split their translations.

    Returns:
        A list of the indices of the target and the source word, and the
        positions in the translation. A word that a leaf splits is left out
        unless it is the same in both.
    """
    pairs = []
    if sentence.words == sources or not targets:
        return pairs
    leaves = [leaf.start for leaf in sentence.leaves]
    begins = [word.start for word in sentence.words]
    for number, word in enumerate(sources):
        first = bisect.bisect_right(begins, word.start)
        last = bisect.bisect_left(begins, word.end)
        target = int(weights[:, number].argmax())
        if first == last or int(weights[target].argmax()) != number:
            continue
        start, end = targets[target].start, targets[target].end
        same = translation[start:end] == sentence.text[word.start : word.end]
        has_leaf = bisect.bisect_left(leaves, word.start) < bisect.bisect_left(
            leaves, word.end
        )
        if weights[target, number] <= 0 or (has_leaf and not same):
            continue
        ratio = (end - start) / (word.end - word.start)
        places = [
            start + round((begins[place] - word.start) * ratio)
            for place in range(first, last)
        ]
        if all(kind_of(translation[p]) != "mark" for p in places if p < end):
            pairs.append((target, number, places))
    return pairs


def spread_weights(
    weights: np.ndarray,
    targets: list[Word],
    target_parts: list[Word],
    sources: list[Word],
    source_parts: list[Word],
) -> np.ndarray:
    """Returns the weights of parts of words, or of several words together.

    Args:
        weights: Float array `(target words, source words)`.
        targets: The target words.
        target_parts: Parts of them.
        sources: The source words.
        source_parts: Parts of them, each of which gets a share by its length.
    """
    if target_parts != targets:
        begins = [word.start for word in targets]
        rows = [
            bisect.bisect_right(begins, part.start) - 1 for part in target_parts
        ]
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
