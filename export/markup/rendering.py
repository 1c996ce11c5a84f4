"""Writes the translation of a sentence with its tags."""

import collections
import re
from collections.abc import Callable

import numpy as np

from export.markup.tag_projection import Node
from export.markup.tag_projection import Pair
from export.markup.tag_projection import place_nodes
from export.markup.tagged_sentences import Sentence
from export.markup.word_alignment import Word
from export.markup.word_alignment import find_words
from keras_transformer.text.placeholders import ANY


def repair_placeholders(
    sentence: Sentence, translation: str, with_pieces: bool
) -> tuple[str, int]:
    """Leaves each placeholder of a translation in it once.

    Args:
        sentence: The sentence.
        translation: Its translation.
        with_pieces: Whether placeholders stand for its leaves.

    Returns:
        The translation, and how many leaves it lacks or had twice.
    """
    names = [sentence.text[leaf.start : leaf.end] for leaf in sentence.leaves]
    mended = sum(
        max(0, count - len(find_runs(name, translation)))
        for name, count in collections.Counter(names).items()
    )
    if not with_pieces:
        return translation, mended
    left = set(names)

    def keep_first(found):
        nonlocal mended
        if found[0] in left:
            left.remove(found[0])
            return found[0]
        mended += 1
        return ""

    return " ".join(ANY.sub(keep_first, translation).split()), mended


def find_runs(part: str, text: str) -> list[tuple[int, int]]:
    """Returns the words of a text that say a part of another: their runs."""
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


def fix_leaves(sentence: Sentence, translation: str, pair: Pair) -> None:
    """Finds the leaves in a translation that are there; sets `fixed`.

    Of several that are the same, each is the one that looks at it most.
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
        fix_leaves(sentence, translation, pair)
        place_nodes(sentence.root, pair)
    dropped = set()
    for leaf in sentence.leaves:
        if leaf.fixed and leaf.run != leaf.fixed:
            # It stands outside of its tag, and comes back within.
            start, end = (
                words[leaf.fixed[0]].start,
                words[leaf.fixed[1] - 1].end,
            )
            end += translation.startswith(" ", end)
            dropped.update(range(start, end))

    def write(start: int, end: int) -> str:
        places = range(start, end)
        text = "".join(translation[i] for i in places if i not in dropped)
        return escape(text.upper() if sentence.is_loud else text)

    return write_node(sentence.root, (0, len(translation)), words, write)


def write_node(
    node: Node, span: tuple[int, int], words: list[Word], write: Callable
) -> str:
    """Writes what a tag holds.

    Args:
        node: The tag.
        span: Where that begins and ends in the translation.
        words: Of the translation.
        write: Function that writes a range of it.
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
        if is_empty and words and stands_alone(child):
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


def stands_alone(node: Node) -> bool:
    """Tells whether there are to be blanks around a node without words."""
    return node.verbatim is not None or not any(node.touches)


def bounds_of(
    run: tuple[int, int],
    words: list[Word],
    span: tuple[int, int],
    follows: bool,
) -> tuple[int, int]:
    """Returns where a run of words begins and ends, within a span.

    Args:
        run: The first word, and the first that is not of it.
        words: Of the text.
        span: Where the run must be.
        follows: Whether an empty run is behind the word before it.
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
