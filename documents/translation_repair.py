"""Puts symbols that a model lost, and terms of a glossary, into translations."""

import collections
import itertools

import numpy as np

from documents.glossary import Glossary, Match
from documents.markup.document_writer import UNESCAPED
from documents.markup.markup_tokens import Edit, Kind, Token
from documents.markup.segments import make_segment, normalize_blanks
from documents.markup.sentence_writer import write_sentence
from documents.markup.tag_projection import Node, TagProjector
from documents.markup.tagged_sentences import Sentence
from documents.markup.word_alignment import Word, find_words, kind_of, words_in
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
    sentence = Sentence(segment, span, text, marks, knows_placeholders=False)
    # Blanks that were merged may have made one word of two, such as an amount.
    words = find_words(sentence.text), find_words(translation)
    weights = align_by_position(*words, weights)
    return write_sentence(
        sentence, translation, weights, UNESCAPED, lambda start, end: text[start:end]
    )[0]


def align_by_position(
    sources: list[Word], targets: list[Word], known: np.ndarray | None
) -> np.ndarray:
    """Returns weights that align words, but no signs, at the same share of a text.

    Those that are `known` are returned if they have the shape.
    """
    if known is not None and known.shape == (len(targets), len(sources)):
        return known
    weights = np.zeros((len(targets), len(sources)))
    columns = [number for number, word in enumerate(sources) if word.is_word]
    rows = [number for number, word in enumerate(targets) if word.is_word]
    for number, row in enumerate(rows if columns else ()):
        weights[row, columns[number * len(columns) // len(rows)]] = 1
    return weights


def place_terms(
    glossary: Glossary, text: str, translation: str, weights: np.ndarray | None
) -> str:
    """Returns a translation with the target term of each term of its sentence.

    They replace the words that are aligned with the terms. A target term that the
    translation has stays, once for each term. The weights are those of
    `restore_symbols`. A pair that is not `is_alignable` stays as it is.
    """
    if not is_alignable(text, translation):
        return translation
    matches = glossary.find(text)
    sources, words = find_words(text), find_words(translation)
    weights = align_by_position(sources, words, weights)
    nodes = [Node(match.start, match.end, opening=0) for match in matches]
    for node in nodes:
        columns = words_in(sources, node.start, node.end)
        node.first, node.last = columns.start, columns.stop
    fix_present(glossary, nodes, matches, translation, words, weights)
    root = Node(0, len(text), children=[*nodes], run=(0, len(words)))
    is_word = ([word.is_word for word in each] for each in (sources, words))
    TagProjector(weights, *is_word).project(root)
    edits = []
    for node, match in zip(nodes, matches, strict=True):
        first, last = node.run
        if node.fixed:
            continue
        if first < last:
            edits.append((words[first].start, words[last - 1].end, match.target))
        elif match.target:
            place = words[first - 1].end if first else 0
            edits.append((place, place, match.target))
    return write_terms(glossary, translation, sorted(edits, key=lambda edit: edit[:2]))


def fix_present(
    glossary: Glossary,
    nodes: list[Node],
    matches: list[Match],
    translation: str,
    words: list[Word],
    weights: np.ndarray,
) -> None:
    """Sets the words of target terms that are there, the best aligned first."""
    found = glossary.find_targets(matches, translation)
    keys, present = (
        [glossary.key_of(match.target) for match in some] for some in (matches, found)
    )
    pairs = []
    for i, j in itertools.product(range(len(keys)), range(len(present))):
        if keys[i] == present[j]:
            rows = words_in(words, *found[j][:2])
            columns = slice(nodes[i].first, nodes[i].last)
            attention = weights[rows.start : rows.stop, columns].sum()
            pairs.append((attention, i, j, (rows.start, rows.stop)))
    taken = set()
    for _, i, j, run in sorted(pairs, reverse=True):
        if nodes[i].fixed is None and j not in taken:
            nodes[i].fixed = run
            taken.add(j)


def write_terms(glossary: Glossary, translation: str, edits: list[Edit]) -> str:
    """Writes target terms, with blanks between words."""
    written, done = "", 0
    for start, end, target in edits:
        target = glossary.in_case(target, translation[:start], translation[start:end])
        written = join(written, translation[done:start])
        if start == end and kind_of(target[0]) != "lone letter":
            blank = "" if written.endswith(" ") else " "
            target = f"{blank}{target}" if start else f"{target} "
        written = join(written, target)
        done = max(done, end)
        # What is left out takes a blank with it.
        if not target and translation[end : end + 1] == " ":
            done += 1
        elif not target:
            written = written.rstrip(" ")
    return join(written, translation[done:]).strip()


def join(left: str, right: str) -> str:
    """Joins texts, with a blank if a word would go on otherwise."""
    is_word = left and kind_of(left[-1]) in ("letter", "mark")
    blank = " " if is_word and right and kind_of(right[0]) == "letter" else ""
    return f"{left}{blank}{right}"
