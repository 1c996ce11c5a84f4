"""Translators that know the alignment of their words exactly."""

import re
from collections.abc import Callable

import numpy as np

from documents.markup.translate_markup import SentenceTranslator
from documents.markup.word_alignment import find_words
from tests.helpers.marked_documents import split_sentences


def word_for_word(
    write: Callable[[str], str], split=split_sentences, knows_placeholders=False
) -> SentenceTranslator:
    """Returns a translator by a function of sentences that keeps words in order."""

    def translate(texts):
        return [write(text) for text in texts], [False] * len(texts)

    def align(sources, targets):
        return [
            np.eye(len(find_words(target)), len(find_words(source)))
            for source, target in zip(sources, targets, strict=True)
        ]

    return SentenceTranslator(split, translate, align, knows_placeholders)


def identity(knows_placeholders: bool = False) -> SentenceTranslator:
    """Returns a translator whose translations are the sentences."""
    return word_for_word(str, knows_placeholders=knows_placeholders)


def word_swap() -> SentenceTranslator:
    """Returns a translator that swaps each two neighbouring words."""

    def translate(texts):
        return [swap(text)[0] for text in texts], [False] * len(texts)

    def align(sources, targets):
        return [np.eye(len(find_words(text)))[swap(text)[1]] for text in sources]

    return SentenceTranslator(
        split_sentences, translate, align, knows_placeholders=True
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
    if len(find_words(found)) != len(words):
        return text, list(range(len(words)))  # Words have become one.
    return found, order


def letters(text: str) -> list[str]:
    """Returns the characters of a text but blanks, sorted."""
    return sorted(re.sub(r"\s", "", text))


def dictionary(words: dict[str, str]) -> SentenceTranslator:
    """Returns a translator that replaces each word by another one."""

    def write(text):
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return word_for_word(write)
