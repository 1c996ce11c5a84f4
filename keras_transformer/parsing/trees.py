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
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.text_files import read_lines

LEAF = "XX"
ROOT = "TOP"
# What treebanks call the bracket around a sentence; no model needs to write it.
ROOTS = {"", "ROOT", "S1", "TOP", "VROOT"}
TRACE = "-NONE-"
# Other blanks may be part of a word: French numbers have hard spaces.
TOKEN = re.compile(r"[()]|[^() \t\r\n\f\v]+")
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
