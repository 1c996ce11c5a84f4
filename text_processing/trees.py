"""Constituency trees as text, for parsing by translation (Section 6.3).

The source is the words of a sentence. The target is the tree in a format like
that of Vinyals et al. (2015): `(S (NP The/DT cat/NN )NP (VP sleeps/VBZ )VP )S`.
Closing brackets have labels. Vinyals et al. wrote `XX` for each word with its
tag. A model that learns from ten thousand trees then skips words, since all
leaves are alike; so it does with tags without words.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterator

LEAF = "XX"
ROOT = "TOP"
# How the Penn Treebank escapes brackets and its special characters.
BRACKETS = dict(
    zip(("-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"), "(){}[]", strict=True)
)
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}  # In a linearized tree.
ESCAPED_BRACKET = re.compile("-[LR][RCS]B-")
ESCAPED_SIGN = re.compile(r"\\([/*])")


@dataclasses.dataclass(frozen=True)
class Tree:
    """A sentence and its constituents, without function tags and traces.

    Attributes:
        words: The words, without the treebank's escapes: `(`, not `-LRB-`.
        tags: The part of speech of each word; a slash in one is read as `|`.
        symbols: `(NP` and `)NP` around the words of a constituent, and `XX` for
            the next word. The root is omitted, so there may be several
            constituents in a row.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    symbols: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the tree in one line, in the format of treebanks."""
        leaves = zip(self.tags, self.words, strict=True)
        parts = [f"({ROOT}"]
        for symbol in self.symbols:
            if symbol == LEAF:
                tag, word = next(leaves)
                parts.append(f" ({tag} {escape_brackets(word)})")
            else:
                parts.append(f" {symbol}" if symbol[0] == "(" else ")")
        return "".join(parts) + ")"

    def linearize(self) -> str:
        """Returns the linearized tree, a model's target."""
        leaves = zip(map(linearized_word, self.words), self.tags, strict=True)
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


def linearized_word(word: str) -> str:
    """Returns a word as a linearized tree has it.

    The word is normalized like the tokenizer's input, without blanks and
    brackets.
    """
    normal = unicodedata.normalize("NFKC", word)
    return escape_brackets("".join(normal.split())) or LEAF


def escape_brackets(word: str) -> str:
    for bracket, escape in ESCAPES.items():
        word = word.replace(bracket, escape)
    return word


def unescape(word: str) -> str:
    """Returns a word without the treebank's escapes."""
    word = ESCAPED_BRACKET.sub(lambda m: BRACKETS[m[0]], word)
    return ESCAPED_SIGN.sub(r"\1", word)


def close_constituent(symbols: list[str], label: str | None) -> None:
    """Closes a constituent, or drops an empty one. `None` is the root."""
    if symbols and symbols[-1] == f"({label}":
        symbols.pop()
    elif label is not None:
        symbols.append(f"){label}")
