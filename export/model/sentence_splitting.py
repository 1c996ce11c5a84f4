"""Splits texts into sentences and the text between them, in the graph.

The rules are regular expressions (TensorFlow's RE2) with Moses's abbreviations;
tensorflow-text's sentence breakers handle neither abbreviations nor numbers.
`MARK` is inserted around each gap, so that sentences and gaps alternate.
"""

import re
from collections.abc import Callable, Iterable

import sacremoses.corpus
import tensorflow as tf

from keras_transformer.special_ids import UNKNOWN_ID
from text_processing.placeholders import FENCE, is_symbol

# Control characters used as marks; in the input they become blanks.
MARK, DOT = "\x1e", "\x1d"
CONTROLS = r"[\x00\x1d\x1e]"

BLANK = r"[\s\p{Z}]"
LINE_END = r"[\n\v\f\r\x{85}\x{2028}\x{2029}]"
# Marks of lists, headings and quotations; the dash of a dialogue.
LIST_MARK = rf"(?:[-*+•◦▪‣·–—>#|]+|\(?\d{{1,3}}[.)]|\(?\p{{Latin}}\)){BLANK}+"
LINE_START = rf"{BLANK}*(?:{LIST_MARK})*"
CELL_END = r"(?:\x20+\|+)?"
FENCED = rf"(?ms)^({FENCE}.*?(?:^{FENCE}[ \t]*\r?$|\z))"

STOPS = r"[.!?…‥؟۔।॥։።。！？｡]"
WIDE_STOPS = r"[。！？｡]"  # Full stops that need no blank after them.
CLOSERS = r"""(?:\p{Z}?[»›]|["'“”‘’«»‹›)\]}」』）】》〉＂])*"""
NOTES = r"(?:\[\d+\])*"
OPENERS = r"""["'“‘„‚”«‹»›¿¡(\[{「『（【《〈*_–—-]"""
OPENED = rf"(?:{OPENERS}\p{{Z}}?)*"

# Patterns of the gaps between sentences, and replacements.
GAP = rf"{MARK}\2{MARK}"
ENDS = (
    # Lines, and the cells of a table.
    (
        rf"(\A{LINE_START}|{CELL_END}{BLANK}*{LINE_END}{LINE_START}"
        rf"|{CELL_END}{BLANK}*\z|\x20*\t{BLANK}*|\x20+\|+\x20+)",
        rf"{MARK}\1{MARK}",
    ),
    (
        rf"({WIDE_STOPS}+)({BLANK}*)([^\s\p{{Z}}.!?…。！？｡'\"”’»)）\]」』】》〉{MARK}])",
        rf"\1{GAP}\3",
    ),
    # A sentence does not begin with a lower-case letter.
    (
        rf"({STOPS}+{CLOSERS}{NOTES})({BLANK}+)({OPENED}[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}])",
        rf"\1{GAP}\3",
    ),
)
# A text in which some sentence begins with a capital.
CAPITALIZED = (
    rf"(?s).*(?:(?:\A|{LINE_END}){LINE_START}|{STOPS}{CLOSERS}{NOTES}{BLANK}+)"
    rf"{OPENED}[\p{{Lu}}\p{{Lt}}].*"
)
# Ends in other texts, where a sentence may begin with a lower-case letter, but not
# after an ellipsis or a quoted question.
LOWER_CASE_END = (
    rf"((?:[!?؟]+|[^.…]\.{CLOSERS}){NOTES})({BLANK}+)({OPENED}\p{{Ll}})",
    rf"\1{GAP}\3",
)

# What modifies a symbol before it.
MODIFIERS = r"[\x{FE0E}\x{FE0F}\x{20E3}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]"
KEYCAP = r"[0-9#*]\x{FE0F}?\x{20E3}"

ADDRESS = r"\w+://\S+|www\.\S+|[^\s@]+@[^\s@]+\.\w+"
# Where to split a sentence that is too long, best first.
LONG_STOPS = r"[;:—…；：]", r"[,，、)）]"
MAX_REPETITIONS = 200  # RE2's memory is limited.


def split_text(
    text: tf.Tensor, language: str = ""
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Splits texts into sentences and the gaps between them.

    A line end always ends a sentence. Gaps are indentation, list marks, blank
    lines, text without letters (apart from addresses), and Markdown's fenced
    code. A sentence begins with a lower-case letter only in a text in which none
    begins with a capital.

    Args:
        text: String tensor `(B,)`, UTF-8.
        language: ISO 639-1 code. Moses has abbreviations of some forty.

    Returns:
        The parts, strings `(B, (N))`, whose concatenation is the text, except
        that U+0000, U+001D and U+001E become blanks and invalid UTF-8 becomes
        U+FFFD; and bools `(B, (N))`: which parts are sentences.
    """
    # RE2 does not match invalid UTF-8.
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
    text = tf.strings.regex_replace(text, CONTROLS, " ")
    fenced = tf.strings.regex_replace(text, FENCED, rf"{MARK}\1{MARK}")
    blocks = tf.strings.split(fenced, MARK)  # (B, (F))
    marked = tf.where(
        is_gap(blocks), blocks.values, mark_sentence_ends(blocks.values, language)
    )
    marked = join_parts(blocks.with_values(marked), MARK)
    parts = tf.strings.split(marked, MARK)
    return parts, parts.with_values(has_letters(parts.values) & ~is_gap(parts))


def split_long(parts, is_sentence, limit, is_too_long):
    """Splits the sentences that are too long for a model.

    A sentence is split at the best position within `limit` characters, which
    are usually fewer tokens: after a semicolon or colon, else after a comma or
    bracket, else at a blank, else anywhere. If characters have several tokens,
    this is repeated with a quarter and a sixteenth of `limit`.

    `parts` and `is_sentence` are results of `split_text`; `is_too_long` returns
    which strings have more than `limit` tokens.
    """
    for most in (limit, limit // 4, limit // 16):
        sentences = tf.where(is_sentence.values, parts.values, "")
        most = min(max(most, 2), MAX_REPETITIONS)
        some = rf".{{{most // 2},{most - 1}}}"
        breaks = "|".join(some + stop for stop in LONG_STOPS)
        pieces = tf.where(
            is_too_long(sentences),
            tf.strings.regex_replace(
                sentences,
                rf"(?s)(.{{1,{most}}}\z)|({breaks}|{some})({BLANK}+)"
                rf"|(.{{{most}}})",
                rf"\1\2\4{MARK}\3{MARK}",
            ),
            parts.values,
        )
        parts, is_sentence = split_at_marks(parts, is_sentence, pieces)
    return parts, is_sentence


def split_at_symbols(parts, is_sentence, symbols):
    """Splits sentences at symbols, which become gaps with the blanks beside them.

    `parts` and `is_sentence` are results of `split_text`; `symbols` is the class of
    their first characters.
    """
    symbol = rf"(?:{symbols}|{KEYCAP})(?:{MODIFIERS}|\x{{200D}}.)*"
    marked = tf.strings.regex_replace(
        parts.values, rf"({BLANK}*(?:{symbol}{BLANK}*)+)", rf"{MARK}\1{MARK}"
    )
    marked = tf.where(is_sentence.values, marked, parts.values)
    return split_at_marks(parts, is_sentence, marked)


def split_at_marks(parts, is_sentence, marked):
    """Splits parts `(B, (N))` at the marks in `marked`, the same strings `(N,)`."""
    pieces = tf.strings.split(marked, MARK)
    has_text = tf.gather(is_sentence.values, pieces.value_rowids())
    has_text &= ~is_gap(pieces) & has_letters(pieces.values)
    rows = tf.gather(pieces.row_splits, parts.row_splits)
    return tuple(
        tf.RaggedTensor.from_row_splits(values, rows, validate=False)
        for values in (pieces.values, has_text)
    )


def find_unknown_symbols(encode: Callable[[list[str]], Iterable]) -> str:
    """Returns RE2's class of the symbols that a vocabulary lacks.

    `encode` returns the ids of each of some texts, with EOS. A symbol that is
    known is one subword, or one after that of a blank.
    """
    symbols = [chr(code) for code in range(0x100, 0x20000) if is_symbol(chr(code))]
    ranges = []
    for symbol, ids in zip(symbols, encode(symbols), strict=True):
        code = ord(symbol)
        if len(ids) <= 3 and UNKNOWN_ID not in ids:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    parts = (rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
    # No text has U+0000.
    return rf"[\x{{0}}{''.join(parts)}]"


def has_letters(texts):
    """Returns which strings have letters, those of addresses apart."""
    words = tf.strings.regex_replace(texts, ADDRESS, "")
    return tf.strings.regex_full_match(words, r"(?s).*\p{L}.*")


def join_parts(parts, separator=""):
    """Joins ragged strings `(B, (N))` to strings `(B,)`."""
    return tf.strings.unsorted_segment_join(
        parts.values, parts.value_rowids(), parts.nrows(), separator
    )


def is_gap(parts):
    """Returns which marked parts `(B, (N))` are gaps: every other one."""
    places = tf.range(tf.size(parts.values, tf.int64), dtype=tf.int64)
    return (places - tf.gather(parts.row_starts(), parts.value_rowids())) % 2 == 1


def mark_sentence_ends(text, language):
    """Inserts marks around the gaps between sentences, strings `(B,)`."""
    usual = [*abbreviation_patterns(language)]
    in_any_case = [(f"(?i){pattern}", rewrite) for pattern, rewrite in usual]
    has_capitals = tf.strings.regex_full_match(text, CAPITALIZED)
    capitalized = tf.where(has_capitals, text, "")
    lower = tf.where(has_capitals, "", text)
    return tf.where(
        has_capitals,
        replace_all(capitalized, [*usual, *ENDS]),
        replace_all(lower, [*in_any_case, *ENDS, LOWER_CASE_END]),
    )


def replace_all(text, patterns):
    for pattern, rewrite in (*patterns, (DOT, ".")):
        text = tf.strings.regex_replace(text, pattern, rewrite)
    return text


def abbreviation_patterns(language):
    """Yields patterns of dots that do not end a sentence, and replacements."""
    not_in_word = r"(\A|[^\p{L}\p{N}.])"
    words, before_numbers = abbreviations(language)
    if before_numbers:
        yield (rf"{not_in_word}({before_numbers})\.({BLANK}*\p{{N}})", rf"\1\2{DOT}\3")
    if words:
        yield rf"{not_in_word}({words})\.", rf"\1\2{DOT}"
    # U.S., but not p.m., where a capital follows.
    yield rf"((?:\A|[^\p{{L}}.])(?:\p{{Lu}}[.{DOT}])+\p{{Lu}})\.", rf"\1{DOT}"
    # Initials, but for English's I.
    initials = "[A-HJ-Z]" if language == "en" else r"\p{Lu}"
    before = rf"(\A|{BLANK}|{OPENERS})"
    yield rf"{before}({initials}\p{{M}}*)\.", rf"\1\2{DOT}"


def abbreviations(language):
    """Returns patterns of abbreviations, and of those before numbers."""
    known = sacremoses.corpus.NonbreakingPrefixes()
    if language not in known.available_langs.values():
        return "", ""
    words, before_numbers = [], []
    for word in known.words(language):
        word, _, note = word.partition(" ")
        if len(word) > 1 or not word.isupper():  # Initials have their own rule.
            (before_numbers if note else words).append(re.escape(word))
    return "|".join(words), "|".join(before_numbers)
