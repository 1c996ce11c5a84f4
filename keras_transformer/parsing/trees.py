"""Constituency trees as text, for parsing by translation (Section 6.3).

A model reads the words of a sentence and writes its tree much as Vinyals et al.
(2015) do: `(S (NP The/DT cat/NN )NP (VP sleeps/VBZ )VP )S`. Closing brackets
say what they close. Vinyals et al. wrote `XX` for each word with its tag. With
ten thousand trees that does not do, nor do tags without words: a model loses
count of what looks alike, and skips words.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterator

LEAF = "XX"
ROOT = "TOP"
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
        leaves = zip(map(escape_brackets, self.words), self.tags, strict=True)
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


def escape_brackets(word: str) -> str:
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


def close_constituent(symbols: list[str], label: str | None) -> None:
    """Closes a constituent; one without words goes. `None` is the root."""
    if symbols and symbols[-1] == f"({label}":
        symbols.pop()
    elif label is not None:
        symbols.append(f"){label}")
