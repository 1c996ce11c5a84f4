"""Reads treebanks in Penn Treebank form (Section 6.3)."""

import pathlib
import re
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.text_files import read_lines
from text_processing.trees import LEAF, Tree, close_constituent, unescape

# Labels of the bracket around a sentence, which a model need not write.
ROOTS = {"", "ROOT", "S1", "TOP", "VROOT"}
TRACE = "-NONE-"
# Other blanks may be part of a word: French numbers have no-break spaces.
TOKEN = re.compile(r"[()]|[^() \t\r\n\f\v]+")
FUNCTION = re.compile(r"(?<=.)[-=].*")


def read_trees(path: pathlib.Path) -> Iterator[Tree]:
    """Yields the trees of a file in Penn Treebank form.

    Function tags (`NP-SBJ`, `NP=2`), traces (`-NONE-`), constituents of traces
    only and the root are removed.

    Args:
        path: Path of UTF-8 text, plain or gzip; a tree may span lines.

    Raises:
        UserError: At text that is not a tree, with file and line.
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
    """Makes a tree from tokens with balanced parentheses; errors name `where`."""
    words, tags, symbols, labels = [], [], [], []
    place = 0
    while place < len(tokens):
        ahead = tokens[place : place + 4]
        shape = "".join(t if t in ("(", ")") else "w" for t in ahead)
        if shape[0] == ")":
            close_constituent(symbols, labels.pop())
            place += 1
        elif shape == "(ww)":
            if ahead[1] != TRACE:
                tags.append(ahead[1].replace("/", "|"))
                words.append(unescape(ahead[2]))
                symbols.append(LEAF)
            place += 4
        elif shape[:3] == "(w(" or (shape[:2] == "((" and not labels):
            label = ahead[1] if shape[1] == "w" else ""
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
