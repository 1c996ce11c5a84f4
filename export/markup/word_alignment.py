"""Finds words in texts, and computes word alignments from attention.

A model aligns pieces; tags go around words. Text is cut into letters and what
belongs to them, and every other sign alone; where a script leaves no blanks,
each letter is a word.
"""

import functools
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.text.placeholders import find_placeholders

# What joins the letters around it to one word.
JOINERS = "'’-‐.·\u00ad\u200c\u200d"
# Thai to Lao, Burmese, Khmer; kana; Han.
SPACELESS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),
    *((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xF900, 0xFAFF), (0x20000, 0x323AF)),
)
# What each further piece of a word counts, of the one before it.
LATER_PIECES = 0.3


class Word(NamedTuple):
    """A word or another sign of a text."""

    start: int
    end: int
    is_word: bool  # Whether it has a letter or digit.


@functools.lru_cache(maxsize=4096)
def kind_of(character: str) -> str:
    """Returns `"letter"`, `"lone letter"`, `"mark"`, `"blank"` or `"sign"`."""
    category = unicodedata.category(character)
    if character.isspace():
        return "blank"
    if category[0] == "M" or category == "Cf":
        return "mark"
    if category[0] not in "LN":
        return "sign"
    code = ord(character)
    is_lone = any(first <= code <= last for first, last in SPACELESS)
    return "lone letter" if is_lone else "letter"


def find_words(text: str) -> list[Word]:
    """Returns the words of a text, and its other signs, one by one.

    What a placeholder may stand for is one word.

    Example:
        >>> text = "Don't lift 3.5 kg!"
        >>> [text[word.start : word.end] for word in find_words(text)]
        ["Don't", 'lift', '3.5 kg', '!']
    """
    words, place = [], 0
    wholes = dict(find_placeholders(text))
    while place < len(text):
        kind, end = kind_of(text[place]), place + 1
        if place in wholes:
            kind, end = "letter", wholes[place]
        elif kind == "letter":
            end = end_of_letters(text, place)
        else:
            while end < len(text) and kind_of(text[end]) == "mark":
                end += 1
        if kind != "blank":
            words.append(Word(place, end, kind.endswith("letter")))
        place = end
    return words


def end_of_letters(text: str, place: int) -> int:
    """Returns where the word ends that begins at a place."""
    while place < len(text):
        kind = kind_of(text[place])
        following = kind_of(text[place + 1]) if place + 1 < len(text) else ""
        joins = text[place] in JOINERS and following == "letter"
        if kind not in ("letter", "mark") and not joins:
            break
        place += 1
    return place


def weigh_words(
    attention: np.ndarray,
    source: str,
    source_pieces: Sequence[bytes],
    target: str,
    target_pieces: Sequence[bytes],
) -> np.ndarray:
    """Turns the attention of pieces into that of words.

    Args:
        attention: Float array `(T, S)`, of target pieces to source pieces.
        source: The text that the source pieces spell.
        source_pieces: SentencePiece's pieces, the end symbol included.
        target: The text that the target pieces spell.
        target_pieces: Its pieces.

    Returns:
        Float array of target words and source words, as `find_words` finds
        them: each row sums to 1, or to 0 where nothing is known. A source word
        that many look at tells less of each.
    """
    of_source = share_pieces(source_pieces, source)  # (S, source words)
    of_target = share_pieces(target_pieces, target)  # (T, target words)
    rows = attention[: len(of_target), : len(of_source)] @ of_source
    # The first piece of a word is what looks at its source; those that spell
    # the rest of it look ahead.
    later = np.cumsum(of_target > 0, axis=0) - 1
    weights = (of_target * LATER_PIECES**later).T @ normalize(rows)
    # A preposition may look most at the noun behind it, as that does; but what
    # it stands for nothing else looks at.
    return normalize(normalize(normalize(weights), axis=0))


def normalize(weights: np.ndarray, axis: int = 1) -> np.ndarray:
    """Lets each row sum to 1, or each column, if it has anything."""
    sums = weights.sum(axis, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def share_pieces(pieces: Sequence[bytes], text: str) -> np.ndarray:
    """Returns which share of each piece belongs to each word of a text.

    The tokenizer normalizes text. What it spells is compared with the text in
    Unicode's form NFKC; where they differ in length, places are stretched.
    """
    spelt = [spell(piece) for piece in pieces]
    places = [
        place
        for place, character in enumerate(text)
        for _ in "".join(unicodedata.normalize("NFKC", character).split())
    ]
    stretch = len(places) / max(1, sum(map(len, spelt)))
    words = find_words(text)
    word_at = np.full(len(text), -1)
    for number, word in enumerate(words):
        word_at[word.start : word.end] = number
    shares, done = np.zeros((len(pieces), len(words))), 0
    for row, letters in zip(shares, spelt, strict=True):
        for place in range(done, done + len(letters)):
            number = word_at[places[min(int(place * stretch), len(places) - 1)]]
            row[number] += 1 / len(letters)
        done += len(letters)
    return shares


def spell(piece: bytes) -> str:
    """Returns what a piece has but blanks; a byte of many is a character."""
    if piece in (b"</s>", b"<s>", b"<pad>"):
        return ""
    if len(piece) == 6 and piece.startswith(b"<0x"):
        byte = int(piece[3:5], 16)
        return "" if byte & 0xC0 == 0x80 else "?"
    return "".join(piece.decode("utf-8", "replace").replace("▁", " ").split())
