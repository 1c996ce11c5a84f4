"""Repairs malformed trees that a parsing model wrote (Section 6.3)."""

import re
from collections.abc import Iterable

from text_processing.trees import LEAF, Tree, close_constituent, linearized_word

BRACKET = re.compile(r"[()][^()\s]+")
WRITTEN_LEAF = re.compile(r"([^()\s]+)/([^()\s/]+)")


def repair_tree(text: str, words: Iterable[str]) -> tuple[Tree, frozenset[str]]:
    """Makes a tree from a model's output, however malformed.

    The tree has every word of the sentence, once and in order; the words of the
    output are aligned with those of the sentence. The repairs by name:

    * `"symbols"`: A symbol that is neither a bracket nor a word with its tag is
      dropped.
    * `"labels"`: A closing bracket whose label is not open closes the
      innermost constituent.
    * `"brackets"`: A closing bracket also closes the constituents within its
      own. The end of the text closes all constituents. A closing bracket
      without an open one is dropped.
    * `"words"`: A different word is replaced by that of the sentence.
    * `"leaves"`: A surplus word is dropped. A missing word gets the tag `XX`
      and precedes the next word of the output; at the end of the sentence it is
      added to the last constituent of the root, which often has the full stop.
    * `"empty"`: A constituent without words is dropped.

    Args:
        text: The output of the model.
        words: The words of the sentence.

    Returns:
        The tree and the names of the repairs.
    """
    words = tuple(words)
    repairs = set()
    symbols, leaves = [], []
    for token in text.split():
        leaf = WRITTEN_LEAF.fullmatch(token)
        if leaf:
            leaves.append(leaf.groups())
        elif not BRACKET.fullmatch(token):
            repairs.add("symbols")
            continue
        symbols.append(LEAF if leaf else token)
    tags, (*counts, after) = align(leaves, words, repairs)
    counts = iter(counts)
    placed = []
    for symbol in symbols:
        placed += [LEAF] * next(counts) if symbol == LEAF else [symbol]
    balanced = balance(placed, repairs)
    closed = bool(balanced) and balanced[-1] != LEAF
    place = len(balanced) - 1 if closed else len(balanced)
    balanced[place:place] = [LEAF] * after
    return Tree(words, tuple(tags), tuple(balanced)), frozenset(repairs)


def align(
    leaves: list[tuple[str, str]], words: tuple[str, ...], repairs: set[str]
) -> tuple[list[str], list[int]]:
    """Aligns the words of an output with those of the sentence, by least edits.

    Returns the tag of each word of the sentence; and for each leaf the number of
    words that replace it: the missing words before it, and itself unless it is
    surplus. The last number counts the missing words at the end.
    """
    words = [linearized_word(word) for word in words]
    table = [range(len(words) + 1)]
    for row, (written, _) in enumerate(leaves, 1):
        above, edits = table[-1], [row]
        for column, word in enumerate(words):
            paired = above[column] + (written != word)
            edits.append(min(paired, above[column + 1] + 1, edits[-1] + 1))
        table.append(edits)
    tags = [LEAF] * len(words)
    counts = [0] * (len(leaves) + 1)
    row, column = len(leaves), len(words)
    while row or column:
        edits = table[row][column]
        differ = row and column and leaves[row - 1][0] != words[column - 1]
        if row and column and edits == table[row - 1][column - 1] + differ:
            row, column = row - 1, column - 1
            tags[column] = leaves[row][1]
            counts[row] += 1
            if differ:
                repairs.add("words")
            continue
        repairs.add("leaves")
        if row and edits == table[row - 1][column] + 1:
            row -= 1
        else:
            column -= 1
            counts[row] += 1
    return tags, counts


def balance(symbols: list[str], repairs: set[str]) -> list[str]:
    """Returns the symbols with balanced brackets."""
    balanced, labels = [], []

    def close():
        if balanced[-1] == f"({labels[-1]}":
            repairs.add("empty")
        close_constituent(balanced, labels.pop())

    for symbol in symbols:
        label = symbol[1:]
        if symbol == LEAF:
            balanced.append(LEAF)
        elif symbol[0] == "(":
            labels.append(label)
            balanced.append(symbol)
        elif not labels:
            repairs.add("brackets")
        else:
            if label not in labels:
                repairs.add("labels")
                label = labels[-1]
            while labels[-1] != label:
                repairs.add("brackets")
                close()
            close()
    if labels:
        repairs.add("brackets")
    while labels:
        close()
    return balanced
