"""Translators that know the alignment of their words exactly."""

import random
import re
from collections.abc import Callable

import numpy as np

from documents.markup.translate_markup import SentenceTranslator, find_parts
from documents.markup.word_alignment import find_words

# A full stop, or what else stands between blanks.
TOKEN = re.compile(r"5 kg|[^\s.]+(?:\.[^\s.]+)*|\.")
SENTENCE = re.compile(r"\S(?:.*?\.(?=\s|\Z)|.*\S|)")


def split_sentences(texts):
    """Cuts behind full stops that a blank follows."""
    return [[found.span() for found in SENTENCE.finditer(t)] for t in texts]


def word_for_word(
    write: Callable[[str], str], split=split_sentences, knows_placeholders=False
) -> SentenceTranslator:
    """Returns a translator by a function of sentences that keeps words in order."""
    return SentenceTranslator(
        split,
        lambda texts: [(write(text), False) for text in texts],
        lambda pairs: [np.eye(*(len(find_words(x)) for x in p[::-1])) for p in pairs],
        knows_placeholders,
    )


def identity(knows_placeholders: bool = False) -> SentenceTranslator:
    """Returns a translator whose translations are the sentences."""
    return word_for_word(str, knows_placeholders=knows_placeholders)


def dictionary(words: dict[str, str]) -> SentenceTranslator:
    """Returns a translator that replaces each word by another one."""

    def write(text):
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return word_for_word(write)


def word_swap() -> SentenceTranslator:
    """Returns a translator that swaps each two neighbouring words."""
    return SentenceTranslator(
        split_sentences,
        lambda texts: [(swap(text)[0], False) for text in texts],
        lambda pairs: [np.eye(len(find_words(s)))[swap(s)[1]] for s, _ in pairs],
        knows_placeholders=True,
    )


def swap(text: str) -> tuple[str, list[int]]:
    """Swaps words; returns the text, and the index in the source of each word."""
    words = find_words(text)
    order = list(range(len(words)))
    names = [i for i, word in enumerate(words) if word.is_word]
    for left, right in zip(names[::2], names[1::2], strict=False):
        order[left], order[right] = right, left
    parts, done = [], 0
    for word, source in zip(words, order, strict=True):
        other = words[source]
        parts += [text[done : word.start], text[other.start : other.end]]
        done = word.end
    found = "".join([*parts, text[done:]])
    leaves = [sorted(name for _, name in find_parts(side)) for side in (text, found)]
    if leaves[0] != leaves[1] or len(find_words(found)) != len(words):
        # There are other variables now, or two words have become one.
        return text, list(range(len(words)))
    return found, order


def permuted(order: Callable[[int], list[int]]) -> SentenceTranslator:
    """Returns a translator that writes words in capitals in another order.

    `order` is a function from a number of words to the place of each.
    """

    def write(text):
        tokens = [t.upper() if t.isalnum() else t for t in TOKEN.findall(text)]
        return " ".join(tokens[i] for i in order(len(tokens)))

    def weigh(source, target):
        words = find_words(source)
        of_token = [
            [i for i, w in enumerate(words) if found.start() <= w.start < found.end()]
            for found in TOKEN.finditer(source)
        ]
        of_target = [i for k in order(len(of_token)) for i in of_token[k]]
        assert len(of_target) == len(find_words(target))
        return np.eye(len(words))[of_target]

    return SentenceTranslator(
        split_sentences,
        lambda texts: [(write(text), False) for text in texts],
        lambda pairs: [weigh(*pair) for pair in pairs],
    )


def reverse(count):
    return range(count)[::-1]


def shuffle(count):
    return random.Random(count).sample(range(count), count)


def letters(text: str) -> list[str]:
    """Returns the characters of a text but blanks, sorted."""
    return sorted(re.sub(r"\s", "", text))
