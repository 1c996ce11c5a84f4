"""Tests of `documents.translation_repair`."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, strategies as st

from documents.markup.translate_markup import translate_markup
from documents.markup.word_alignment import find_words
from documents.translation_repair import has_lost_symbols, restore_symbols
from tests.helpers.known_alignment_translators import identity, permuted, reverse
from text_processing.placeholders import find_symbol_spans

SYMBOLS = [
    *("😆", "❤\ufe0f", "👍🏽", "👨\u200d👩\u200d👧", "🇧🇷", "1\ufe0f\u20e3"),
    *("♪", "→", "★", "©\ufe0f"),
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_symbol_with_its_modifiers_is_one(symbol):
    text = f"a{symbol} {symbol}{symbol}."

    found = [text[slice(*span)] for span in find_symbol_spans(text)]

    assert found == [symbol] * 3


@pytest.mark.parametrize(
    "text", ["5 € ¥", "«a» “b” – …", "№ 5 ™ ①", "+ = $ ^ °", "猫。"]
)
def test_what_a_model_writes_itself_is_no_symbol(text):
    assert find_symbol_spans(text) == []


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("I love 😆 cats", "Eu amo gatos", "Eu amo 😆 gatos"),
        ("Great job 👍!", "Bom trabalho!", "Bom trabalho 👍!"),
        ("♪ La la ♪", "La", "♪ La ♪"),
        ("😆", "", "😆"),
        ("STOP IT 😆", "PARE", "PARE 😆"),
        ("I ❤\ufe0f it", "Eu ❤\ufe0f", "Eu ❤\ufe0f"),
    ],
)
def test_symbols_are_put_back_without_an_alignment(text, translation, expected):
    assert has_lost_symbols(text, translation) == (translation != expected)
    assert restore_symbols(text, translation, None) == expected


@pytest.mark.parametrize(
    ("translation", "expected"),
    [("cats I love", "cats I love 😆"), ("cats I love - - -", "cats I love 😆")],
)
def test_a_symbol_goes_where_it_is_aligned(translation, expected):
    weights = np.zeros((len(find_words(translation)), 4))
    weights[[0, 1, 2], [3, 0, 1]] = 1
    weights[3:, 2] = 1  # Signs that the model wrote for it.
    weights[0, 2] = 0.1  # Less than the attention to the word before the symbol.

    assert restore_symbols("I love 😆 cats", translation, weights) == expected


def test_a_symbol_replaces_no_sign_of_the_sentence():
    weights = np.eye(3, 4)
    weights[2] = 0, 0, 0.9, 0.1  # The full stop.

    assert restore_symbols("See it 😆.", "Veja isso.", weights) == "Veja isso 😆."


WORDS = st.sampled_from(["cat", "the dog", "don't", "a, b", "end.", "THE END", "猫が"])


@given(st.lists(WORDS | st.sampled_from(SYMBOLS), max_size=8).map(" ".join), WORDS)
def test_no_symbol_is_lost(text, translation):
    assert not has_lost_symbols(text, restore_symbols(text, translation, None))


def test_no_symbol_of_unicode_is_lost():
    """Those that the tokenizer does not spell in letters."""
    symbols = [
        character
        for character in map(chr, range(0x100, 0x20000))
        if unicodedata.category(character) in ("So", "Sm", "Sk")
        and unicodedata.normalize("NFKC", character) == character != "\ufffd"
    ]
    text = "a " + " a ".join(symbols)

    assert len(find_symbol_spans(text)) == len(symbols)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_symbols_of_documents_are_placeholders(symbol):
    source = f"<p>one <b>two</b> {symbol} three {symbol}</p>"

    reversed_ = translate_markup(source, "html", permuted(reverse)).content

    assert translate_markup(source, "html", identity(True)).content == source
    assert re.sub("<.*?>", "", reversed_) == f"{symbol} THREE {symbol} TWO ONE"


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("Nimm 5  kg Mehl ☺", "Take 5 kg flour"),
        ("☺ Es kostet 5  €", "It costs 5 €"),
        ("NIMM 5 KG MEHL ☺", "Take 5 kg flour"),
    ],
)
def test_blanks_and_capitals_change_the_words_of_an_alignment(text, translation):
    weights = np.eye(len(find_words(translation)), len(find_words(text)))

    found = restore_symbols(text, translation, weights)

    assert found.count("☺") == 1
    assert found.replace("☺", "").split() in (
        translation.split(),
        translation.upper().split(),
    )


def test_many_grouped_numbers_take_linear_time():
    # Each number tried the rest of the text: minutes for this one.
    assert find_symbol_spans("1\u00a0" * 20_000 + "☺") == [(40_000, 40_001)]


@pytest.mark.timeout(60)  # In quadratic time or memory it would not end.
@pytest.mark.parametrize("text", ["a " * 2**18 + "😆 ♪", "😆 ♪ a" * 2**16])
def test_symbols_of_a_line_of_half_a_mebibyte_are_added_at_the_end(text):
    translation = "b " * 200 + "♪"

    assert has_lost_symbols(text, translation)
    found = restore_symbols(text, translation, None)

    assert found.startswith(translation.strip())
    assert not has_lost_symbols(text, found)
