"""Writes the translation of a sentence with its tags."""

import collections
import re
from collections.abc import Callable

import numpy as np

from export.markup.tag_projection import Node
from export.markup.tag_projection import Pair
from export.markup.tag_projection import project_nodes
from export.markup.tagged_sentences import Sentence
from export.markup.word_alignment import Word
from export.markup.word_alignment import find_words
from text_processing.placeholders import ANY


def repair_placeholders(
    sentence: Sentence, translation: str, with_pieces: bool
) -> tuple[str, int]:
    """Makes each placeholder occur once in a translation.

    Args:
        sentence: The sentence.
        translation: Its translation.
        with_pieces: Whether placeholders replace its leaves.

    Returns:
        The translation, and the number of leaves that were missing or repeated.
    """
    names = [sentence.text[leaf.start : leaf.end] for leaf in sentence.leaves]
    repaired = sum(
        max(0, count - len(find_runs(name, translation)))
        for name, count in collections.Counter(names).items()
    )
    if not with_pieces:
        return translation, repaired
    left = set(names)

    def keep_first(found):
        nonlocal repaired
        if found[0] in left:
            left.remove(found[0])
            return found[0]
        repaired += 1
        return ""

    return " ".join(ANY.sub(keep_first, translation).split()), repaired


def find_runs(part: str, text: str) -> list[tuple[int, int]]:
    """Returns the runs of words of a text that equal a part."""
    words = find_words(text)
    runs = []
    for found in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", text):
        start, end = found.span()
        held = [
            place
            for place, word in enumerate(words)
            if word.start < end and start < word.end
        ]
        runs.append((held[0], held[-1] + 1))
    return runs


def locate_leaves(sentence: Sentence, translation: str, pair: Pair) -> None:
    """Finds the leaves that occur in a translation, and sets `fixed`.

    Among equal candidates the one with the most attention to the leaf is taken.
    """
    left = {}
    for leaf in sentence.leaves:
        part = sentence.text[leaf.start : leaf.end]
        if part not in left:
            left[part] = find_runs(part, translation)
        runs = left[part]
        if runs:
            shares = pair.shares(leaf)
            leaf.fixed = max(runs, key=lambda run: shares[slice(*run)].mean())
            runs.remove(leaf.fixed)


def write_sentence(
    sentence: Sentence,
    translation: str,
    weights: np.ndarray | None,
    escape: Callable,
) -> str:
    """Returns a translation with the tags of its sentence."""
    words = find_words(translation)
    if weights is not None:
        sentence.root.run = (0, len(words))
        pair = Pair(find_words(sentence.text), words, weights)
        locate_leaves(sentence, translation, pair)
        project_nodes(sentence.root, pair)
    dropped = set()
    for leaf in sentence.leaves:
        if leaf.fixed and leaf.run != leaf.fixed:
            # It is outside of its tag, and is put inside again.
            start, end = (
                words[leaf.fixed[0]].start,
                words[leaf.fixed[1] - 1].end,
            )
            end += translation.startswith(" ", end)
            dropped.update(range(start, end))

    def write(start: int, end: int) -> str:
        places = range(start, end)
        text = "".join(translation[i] for i in places if i not in dropped)
        return escape(text.upper() if sentence.is_uppercase else text)

    return write_node(sentence.root, (0, len(translation)), words, write)


def write_node(
    node: Node, span: tuple[int, int], words: list[Word], write: Callable
) -> str:
    """Writes the content of a tag.

    Args:
        node: The tag.
        span: The span of the content in the translation.
        words: Words of the translation.
        write: Function that writes a span of the translation.
    """
    if node.verbatim is not None:
        return node.verbatim
    written, (done, end) = [], span
    for child in node.children:
        is_empty = child.run[0] == child.run[1]
        follows = is_empty and (
            child.run[0] == len(words)
            or (child.touches[0] and not child.touches[1])
        )
        begin, stop = bounds_of(child.run, words, span, follows)
        begin = max(begin, done)
        stop = max(begin, stop)
        blanks = "", ""
        if is_empty and words and needs_blanks(child):
            blanks = (" ", "") if follows else ("", " ")
        written += [
            write(done, begin),
            blanks[0],
            child.before or "",
            write_node(child, (begin, stop), words, write),
            child.after or "",
            blanks[1],
        ]
        done = stop
    return "".join([*written, write(done, end)])


def needs_blanks(node: Node) -> bool:
    """Returns whether a node without words needs blanks around it."""
    return node.verbatim is not None or not any(node.touches)


def bounds_of(
    run: tuple[int, int],
    words: list[Word],
    span: tuple[int, int],
    follows: bool,
) -> tuple[int, int]:
    """Returns the span of a run of words in characters.

    Args:
        run: Index of the first word, and of the first word after the run.
        words: Words of the text.
        span: Span that must contain the result.
        follows: Whether an empty run is put after the preceding word.
    """
    start, end = span
    first, last = run
    if first == last:
        if follows:
            begin = words[first - 1].end if first else start
        else:
            begin = words[first].start if first < len(words) else end
        return (min(max(begin, start), end),) * 2
    begin = words[first].start if first else start
    stop = words[last - 1].end if last < len(words) else end
    return min(max(begin, start), end), min(max(stop, start), end)
