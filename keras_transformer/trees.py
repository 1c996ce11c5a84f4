"""Constituency trees as text, for parsing by translation (Section 6.3).

A model reads the words of a sentence and writes its tree much as Vinyals et al.
(2015) do: `(S (NP The/DT cat/NN )NP (VP sleeps/VBZ )VP )S`. Closing brackets
say what they close. Vinyals et al. wrote `XX` for each word with its tag. With
ten thousand trees that does not do, nor do tags without words: a model loses
count of what looks alike, and skips words.
"""

import dataclasses
import pathlib
import re
import unicodedata
from collections.abc import Iterable
from collections.abc import Iterator

from keras_transformer.errors import UserError
from keras_transformer.text_files import read_lines

LEAF = "XX"
ROOT = "TOP"
# What treebanks call the bracket around a sentence; no model needs to write it.
ROOTS = {"", "ROOT", "S1", "TOP", "VROOT"}
TRACE = "-NONE-"
# Other blanks may be part of a word: French numbers have hard spaces.
TOKEN = re.compile(r"[()]|[^() \t\r\n\f\v]+")
BRACKET = re.compile(r"[()][^()\s]+")
WRITTEN_LEAF = re.compile(r"([^()\s]+)/([^()\s/]+)")
# How the Penn Treebank writes brackets and signs that mean something in it.
BRACKETS = dict(
    zip(
        ("-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"),
        "(){}[]",
        strict=True,
    )
)
ESCAPED_BRACKET = re.compile("-[LR][RCS]B-")
ESCAPED_SIGN = re.compile(r"\\([/*])")
FUNCTION = re.compile(r"(?<=.)[-=].*")


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and its constituents, without function tags and traces.

    Attributes:
        words: The words; a parenthesis is itself, not `-LRB-`, and a slash has
            no backslash.
        tags: The part of speech of each word; a slash in one is read as `|`.
        symbols: `(NP` and `)NP` around the words of a constituent, and `XX` for
            the next word. The root is left out, so there may be several
            constituents beside each other.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    symbols: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the tree in one line, as treebanks have it."""
        leaves = zip(self.tags, self.words, strict=True)
        parts = [f"({ROOT}"]
        for symbol in self.symbols:
            if symbol == LEAF:
                tag, word = next(leaves)
                parts.append(f" ({tag} {escape(word)})")
            else:
                parts.append(f" {symbol}" if symbol[0] == "(" else ")")
        return "".join(parts) + ")"

    def linearize(self) -> str:
        """Returns what a model writes of the tree."""
        leaves = zip(map(spell, self.words), self.tags, strict=True)
        return " ".join(
            "/".join(next(leaves)) if symbol == LEAF else symbol
            for symbol in self.symbols
        )

    def constituents(self) -> Iterator[tuple[str, int, int]]:
        """Yields label, first word and end of each constituent."""
        still_open = []
        position = 0
        for symbol in self.symbols:
            if symbol == LEAF:
                position += 1
            elif symbol[0] == "(":
                still_open.append((symbol[1:], position))
            else:
                yield *still_open.pop(), position


def spell(word: str) -> str:
    """Returns a word as it stands in a linearized tree.

    It is normalized as the tokenizer would, and has no blank and no bracket.
    """
    normal = unicodedata.normalize("NFKC", word)
    return escape("".join(normal.split())) or LEAF


def escape(word: str) -> str:
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def unescape(word: str) -> str:
    """Returns a word as it was before the treebank wrote it."""
    word = ESCAPED_BRACKET.sub(lambda m: BRACKETS[m[0]], word)
    return ESCAPED_SIGN.sub(r"\1", word)


def read_trees(path: pathlib.Path) -> Iterator[Tree]:
    """Yields the trees of a file in Penn Treebank form.

    Function tags (`NP-SBJ`, `NP=2`), traces (`-NONE-`) and constituents that
    hold nothing else are left out, and so is the root.

    Args:
        path: Path of UTF-8 text, plain or gzip; a tree may go over lines.

    Raises:
        UserError: At what is no tree, in words, with file and line.
    """
    tokens, depth, begun = [], 0, 0
    for number, line in enumerate(read_lines(path), start=1):
        for token in TOKEN.findall(line):
            if not depth:
                if token != "(":
                    raise UserError(
                        "a tree must begin with (. "
                        f"Received: {path}, line {number}, {token}"
                    )
                tokens, begun = [], number
            tokens.append(token)
            depth += {"(": 1, ")": -1}.get(token, 0)
            if not depth:
                yield build_tree(tokens, f"{path}, tree of line {begun}")
    if depth:
        raise UserError(
            f"a tree must close all brackets; {depth} are open at the end. "
            f"Received: {path}, tree of line {begun}"
        )
    if not tokens:
        raise UserError(f"a file of trees must hold one. Received: {path}")


def build_tree(tokens: list[str], where: str) -> Tree:
    """Makes a tree of its tokens, whose parentheses are balanced.

    Args:
        tokens: Parentheses and what stands between them.
        where: File and line, for the message.

    Raises:
        UserError: If a bracket holds neither a label and brackets, nor a tag
            and a word, or if a root is within a tree.
    """
    words, tags, symbols, labels = [], [], [], []
    place = 0
    while place < len(tokens):
        here = tokens[place : place + 4]
        shape = "".join(t if t in ("(", ")") else "w" for t in here)
        if shape[0] == ")":
            close_constituent(symbols, labels.pop())
            place += 1
        elif shape == "(ww)":
            if here[1] != TRACE:
                tags.append(here[1].replace("/", "|"))
                words.append(unescape(here[2]))
                symbols.append(LEAF)
            place += 4
        elif shape[:3] == "(w(" or (shape[:2] == "((" and not labels):
            label = here[1] if shape[1] == "w" else ""
            place += 2 if label else 1
            label = FUNCTION.sub("", label)
            if label not in ROOTS:
                symbols.append(f"({label}")
            elif symbols:
                raise UserError(
                    f"{label} must stand around a whole tree. Received: "
                    f"{where}, {label} within a tree: is a bracket missing?"
                )
            labels.append(None if label in ROOTS else label)
        else:
            raise UserError(
                "a bracket must hold a label and brackets, or a tag and a "
                f"word. Received: {where}, … {' '.join(tokens[place:][:6])} …"
            )
    return Tree(tuple(words), tuple(tags), tuple(symbols))


def close_constituent(symbols: list[str], label: str | None) -> None:
    """Closes a constituent; one without words goes. `None` is the root."""
    if symbols and symbols[-1] == f"({label}":
        symbols.pop()
    elif label is not None:
        symbols.append(f"){label}")


def restore(text: str, words: Iterable[str]) -> tuple[Tree, frozenset[str]]:
    """Makes a tree of what a model wrote, whatever that is.

    Every word of the sentence comes in, once and in order. The words that the
    model wrote tell which is which. What is wrong is mended:

    * `"symbols"`: What is neither a bracket nor a word with its tag is left
      out.
    * `"labels"`: A closing bracket whose label is not open closes the
      innermost constituent.
    * `"brackets"`: A closing bracket closes what is open within, the end closes
      everything, and where nothing is open, none closes.
    * `"words"`: Another word in the place of one of the sentence is that one.
    * `"leaves"`: A word too many is left out. Words that are not written get
      `XX` and come before the next that is; at the end, they come last in the
      last constituent of the root, as the full stop often does.
    * `"empty"`: A constituent without words is left out.

    Args:
        text: What the model wrote.
        words: The words of the sentence.

    Returns:
        The tree and what was wrong.
    """
    words = tuple(words)
    faults = set()
    symbols, leaves = [], []
    for token in text.split():
        leaf = WRITTEN_LEAF.fullmatch(token)
        if leaf:
            leaves.append(leaf.groups())
        elif not BRACKET.fullmatch(token):
            faults.add("symbols")
            continue
        symbols.append(LEAF if leaf else token)
    tags, (*counts, behind) = align(leaves, words, faults)
    counts = iter(counts)
    placed = []
    for symbol in symbols:
        placed += [LEAF] * next(counts) if symbol == LEAF else [symbol]
    balanced = balance(placed, faults)
    closed = bool(balanced) and balanced[-1] != LEAF
    place = len(balanced) - 1 if closed else len(balanced)
    balanced[place:place] = [LEAF] * behind
    return Tree(words, tuple(tags), tuple(balanced)), frozenset(faults)


def align(
    leaves: list[tuple[str, str]], words: tuple[str, ...], faults: set[str]
) -> tuple[list[str], list[int]]:
    """Finds which word of a sentence each written one is, by least edits.

    Args:
        leaves: Words and tags as a model wrote them.
        words: The words of the sentence.
        faults: To it is added what differs.

    Returns:
        The tag of each word of the sentence; and for each leaf the number of
        words in its place: itself, unless it is one too many, and those before
        it that are not written. The last number is that of words behind all.
    """
    words = [spell(word) for word in words]
    table = [range(len(words) + 1)]
    for row, (written, _) in enumerate(leaves, 1):
        above, here = table[-1], [row]
        for column, word in enumerate(words):
            paired = above[column] + (written != word)
            here.append(min(paired, above[column + 1] + 1, here[-1] + 1))
        table.append(here)
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
                faults.add("words")
            continue
        faults.add("leaves")
        if row and edits == table[row - 1][column] + 1:
            row -= 1
        else:
            column -= 1
            counts[row] += 1
    return tags, counts


def balance(symbols: list[str], faults: set[str]) -> list[str]:
    """Returns symbols that are a tree."""
    balanced, labels = [], []

    def close():
        if balanced[-1] == f"({labels[-1]}":
            faults.add("empty")
        close_constituent(balanced, labels.pop())

    for symbol in symbols:
        label = symbol[1:]
        if symbol == LEAF:
            balanced.append(LEAF)
        elif symbol[0] == "(":
            labels.append(label)
            balanced.append(symbol)
        elif not labels:
            faults.add("brackets")
        else:
            if label not in labels:
                faults.add("labels")
                label = labels[-1]
            while labels[-1] != label:
                faults.add("brackets")
                close()
            close()
    if labels:
        faults.add("brackets")
    while labels:
        close()
    return balanced
