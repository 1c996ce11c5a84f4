"""Puts the symbols that a model lost back into the translation of a sentence."""

import collections

import numpy as np

from documents.markup.document_writer import UNESCAPED
from documents.markup.markup_tokens import Kind, Token
from documents.markup.placeholder_repair import normalize_blanks
from documents.markup.segments import make_segment
from documents.markup.sentence_writer import write_sentence
from documents.markup.tagged_sentences import make_sentence
from documents.markup.word_alignment import Word, find_words
from text_processing.placeholders import find_symbol_spans

# Maximum product of the lengths of a sentence and of its translation. Longer ones
# were cut by the model, and their alignment would take gigabytes.
MAX_PAIRS = 2**22


def count_symbols(text: str) -> collections.Counter:
    return collections.Counter(text[slice(*span)] for span in find_symbol_spans(text))


def has_lost_symbols(text: str, translation: str) -> bool:
    """Returns whether a translation has fewer of a symbol than its sentence."""
    symbols = count_symbols(text)
    return any(translation.count(each) < count for each, count in symbols.items())


def is_alignable(text: str, translation: str) -> bool:
    """Returns whether the alignment of a sentence and a translation is small."""
    return len(text) * len(translation) <= MAX_PAIRS


def restore_symbols(text: str, translation: str, weights: np.ndarray | None) -> str:
    """Returns a translation with each symbol of its sentence, where it is aligned.

    The weights `(target words, source words)` have the words of `find_words`; with
    `None`, words are aligned by their positions. What is lost of a text that is not
    `is_alignable` is added at the end. A text without letters or with messages of
    ICU stays untranslated; the translation of one in capitals is in capitals.
    """
    segment = make_segment([Token(Kind.TEXT, 0, len(text), text)])
    if segment is None:
        return text
    translation = normalize_blanks(translation)
    symbols = count_symbols(text)
    if not is_alignable(text, translation):
        lost = symbols - collections.Counter({s: translation.count(s) for s in symbols})
        return " ".join([translation, *lost.elements()])
    marks = [mark for mark in segment.marks if mark[2].text in symbols]
    span = 0, len(segment.text)
    sentence = make_sentence(segment, span, text, marks, knows_placeholders=False)
    words = find_words(sentence.text), find_words(translation)
    # Blanks that were merged may have made one word of two, such as an amount.
    if weights is None or weights.shape != tuple(map(len, reversed(words))):
        weights = align_by_position(*words)
    return write_sentence(
        sentence, translation, weights, UNESCAPED, lambda start, end: text[start:end]
    )[0]


def align_by_position(sources: list[Word], targets: list[Word]) -> np.ndarray:
    """Returns weights that align words, but no signs, at the same share of a text."""
    weights = np.zeros((len(targets), len(sources)))
    columns, rows = (
        [number for number, word in enumerate(words) if word.is_word]
        for words in (sources, targets)
    )
    for number, row in enumerate(rows):
        weights[row, columns[number * len(columns) // len(rows)]] = 1
    return weights
