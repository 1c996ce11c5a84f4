"""Finds words in texts, and computes word alignments from attention.

A model aligns subwords, but tags enclose words. A word is a run of letters and
their marks, or a single other character. In scripts without blanks, each letter
is a word.
"""

import bisect
import functools
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from documents.markup.markup_tokens import Span
from text_processing.placeholders import find_untranslatable_spans

# Characters without width that are in words; others are words of their own.
IN_WORDS = "\u00ad\u200c\u200d"
# Characters that join the letters around them to one word.
JOINERS = f"'’-‐.·{IN_WORDS}"
# Thai to Lao, Burmese, Khmer; kana; Han.
SPACELESS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),
    *((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xF900, 0xFAFF), (0x20000, 0x323AF)),
)
ASCII_LETTERS = re.compile("[0-9A-Za-z]*+")
# Weight of each further subword of a word, relative to the one before.
SUBWORD_DECAY = 0.3


class Word(NamedTuple):
    """A word, or another character, of a text."""

    start: int
    end: int
    is_word: bool  # Whether it contains a letter or digit.


@functools.lru_cache(maxsize=4096)
def kind_of(character: str) -> str:
    """Returns `"letter"`, `"lone letter"`, `"mark"`, `"blank"` or `"sign"`."""
    category = unicodedata.category(character)
    if character.isspace():
        return "blank"
    if category[0] == "M" or character in IN_WORDS:
        return "mark"
    if category[0] not in "LN":
        return "sign"
    code = ord(character)
    is_lone = any(first <= code <= last for first, last in SPACELESS)
    return "lone letter" if is_lone else "letter"


def find_words(text: str) -> list[Word]:
    """Returns the words of a text, and its other characters, one by one.

    Text that a placeholder may replace is one word.

    Example:
        >>> text = "Don't lift 3.5 kg!"
        >>> [text[word.start : word.end] for word in find_words(text)]
        ["Don't", 'lift', '3.5 kg', '!']
    """
    words, place = [], 0
    wholes = dict(find_untranslatable_spans(text))
    while place < len(text):
        kind, end = kind_of(text[place]), place + 1
        if place in wholes:
            end = wholes[place]
            kind = "letter" if has_letter_or_digit(text[place:end]) else "sign"
        elif kind == "letter":
            end = end_of_letters(text, place)
        elif kind != "blank":
            while end < len(text) and kind_of(text[end]) == "mark":
                end += 1
        if kind != "blank":
            words.append(Word(place, end, kind.endswith("letter")))
        place = end
    return words


def end_of_letters(text: str, place: int) -> int:
    """Returns the end of the word that begins at a position."""
    while place < len(text):
        place = ASCII_LETTERS.match(text, place).end()
        if place == len(text):
            break
        kind = kind_of(text[place])
        following = kind_of(text[place + 1]) if place + 1 < len(text) else ""
        joins = text[place] in JOINERS and following == "letter"
        if kind not in ("letter", "mark") and not joins:
            break
        place += 1
    return place


def split_words(
    text: str, words: list[Word], cuts: list[int], wholes: list[Span] = ()
) -> list[Word]:
    """Splits words at sorted positions, such as those of tags.

    The spans in `wholes` are one word each; their ends are in `cuts`.

    Example:
        >>> text = "the do-loop"
        >>> words = split_words(text, find_words(text), [4, 6])
        >>> [text[word.start : word.end] for word in words]
        ['the', 'do', '-loop']
    """
    if not cuts:
        return words
    begins = [start for start, _ in wholes]
    found = [Word(*span, has_letter_or_digit(text[slice(*span)])) for span in wholes]
    for word in words:
        first = bisect.bisect_right(cuts, word.start)
        last = bisect.bisect_left(cuts, word.end)
        edges = [word.start, *cuts[first:last], word.end]
        for start, end in itertools.pairwise(edges):
            place = bisect.bisect_right(begins, start) - 1
            if place >= 0 and start < wholes[place][1]:
                continue
            part = text[start:end]
            start += len(part) - len(part.lstrip())
            is_word = word.is_word
            if first < last:
                is_word = is_word and has_letter_or_digit(part)
            if part.strip():
                end = start + len(part.strip())
                found.append(Word(start, end, is_word))
    return sorted(found)


def words_in(words: list[Word], start: int, end: int) -> range:
    """Returns the indices of the words that overlap a span."""
    first = bisect.bisect_right(words, start, key=lambda word: word.end)
    last = bisect.bisect_left(words, end, key=lambda word: word.start)
    return range(first, last)


def has_letter_or_digit(text: str) -> bool:
    """Returns whether a text contains a letter or digit."""
    return any(map(str.isalnum, text))


def word_attention(
    attention: np.ndarray,
    source: str,
    source_pieces: Sequence[bytes],
    target: str,
    target_pieces: Sequence[bytes],
) -> np.ndarray:
    """Converts attention between subwords to attention between words.

    Args:
        attention: Float array `(T, S)`, of target to source subwords.
        source, target: The texts.
        source_pieces, target_pieces: Their subwords by SentencePiece, with EOS.

    Returns:
        Float array `(target words, source words)`, with the words of
        `find_words`. Each row sums to 1, or to 0 if nothing is known. A source
        word that gets attention from many target words counts less for each.
    """
    of_source = piece_shares(source_pieces, source)  # (S, source words)
    of_target = piece_shares(target_pieces, target)  # (T, target words)
    rows = attention[: len(of_target), : len(of_source)] @ of_source
    # The first piece of a word attends to its source; the pieces after it
    # attend to what comes next.
    later = np.cumsum(of_target > 0, axis=0) - 1
    weights = (of_target * SUBWORD_DECAY**later).T @ normalize(rows)
    # A preposition may attend most to the noun after it, like the noun itself.
    # But no other word attends to the preposition's own source.
    return normalize(normalize(normalize(weights), axis=0))


def normalize(weights: np.ndarray, axis: int = 1) -> np.ndarray:
    """Normalizes the sums along an axis to 1, except zeros."""
    sums = weights.sum(axis, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


def piece_shares(pieces: Sequence[bytes], text: str) -> np.ndarray:
    """Returns the share of each piece that belongs to each word of a text.

    The tokenizer normalizes text. So its pieces are compared with the text in
    Unicode's form NFKC; if the lengths differ, positions are scaled.
    """
    spelt = [piece_text(piece) for piece in pieces]
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


def piece_text(piece: bytes) -> str:
    """Returns a piece without blanks; one unknown or a byte is a character."""
    if piece in (b"</s>", b"<s>", b"<pad>"):
        return ""
    if piece == b"<unk>":
        return "?"
    if len(piece) == 6 and piece.startswith(b"<0x"):
        byte = int(piece[3:5], 16)
        return "" if byte & 0xC0 == 0x80 else "?"
    return "".join(piece.decode("utf-8", "replace").replace("▁", " ").split())
