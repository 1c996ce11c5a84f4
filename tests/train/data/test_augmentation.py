"""Tests of `train.data.augmentation`."""

import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from train.data.augmentation import (
    augment,
    compile_symbols,
    title,
    with_typing_errors,
    without_final_punctuation,
)

SOURCE = "<2es> Two red cats sleep in the old straße of L'Aquila, near us."
PAIR = SOURCE, "Dos gatos rojos duermen."
SYMBOLS = compile_symbols(["<2es>", "<2es", ""])


def kinds_of(found):
    """Which changes a pair has had."""
    source, target = (side.rstrip(".") for side in found)
    kinds = {"final"} if not found[1].endswith(".") else set()
    plain = PAIR[1].rstrip(".")
    if target != plain:
        kinds.add({plain.upper(): "upper", plain.title(): "title"}[target])
    # In lower case and without its last mark, only an error is left.
    lower = PAIR[0].rstrip(".").lower()
    if source.lower() not in (lower, lower.replace("ß", "ss")):
        kinds.add("errors")
    return kinds


def test_the_shares_are_those_of_the_firefox_models():
    count = 20_000
    found = [kinds_of(augment(PAIR, f"0 {i}", SYMBOLS)) for i in range(count)]

    for kind, share in (
        ("upper", 0.07),
        ("title", 0.05),
        ("errors", 0.05),
        ("final", 0.2),
    ):
        number = sum(kind in kinds for kinds in found)
        # Five standard deviations; some errors change nothing, such as a
        # letter that is replaced by the same one.
        deviation = 5 * np.sqrt(share * (1 - share) / count)
        assert number / count < share + deviation
        assert number / count > 0.98 * share - deviation
    # The changes are independent of each other.
    both = sum({"final", "upper"} <= kinds for kinds in found) / count
    assert both == pytest.approx(0.2 * 0.07, abs=0.005)


def test_a_change_is_a_function_of_the_name():
    first = [augment(PAIR, f"0 {i}", SYMBOLS) for i in range(300)]

    assert first == [augment(PAIR, f"0 {i}", SYMBOLS) for i in range(300)]
    assert first != [augment(PAIR, f"1 {i}", SYMBOLS) for i in range(300)]


def test_symbols_stay():
    for i in range(500):
        source, _ = augment(PAIR, f"0 {i}", SYMBOLS)
        assert source.startswith("<2es>")
    upper = {augment(PAIR, f"0 {i}")[0][:5] for i in range(500)}
    assert "<2ES>" in upper


def test_title_case_leaves_the_rest_of_a_word():
    assert title("the USA and l'eau, (x) élan") == "The USA And L'eau, (x) Élan"


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("A.", "B。"), ("A", "B")),
        (("A ! ", "B！"), ("A", "B")),
        (("A...", "B…"), ("A", "B")),
        (("क।", "A."), ("क", "A")),
        (("A؟", "B?"), ("A", "B")),
        # Of different kinds, or on one side.
        (("A.", "B!"), ("A.", "B!")),
        (("A. ", "B"), ("A. ", "B")),
    ],
)
def test_final_punctuation_goes_from_both_sides(pair, expected):
    assert without_final_punctuation(*pair) == expected


def edits(a, b):
    """Levenshtein's distance, where swapping neighbours is one edit too."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y):
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


@hypothesis.settings(deadline=None)
@hypothesis.given(st.text("ab ß,1", max_size=12), st.integers())
def test_an_error_is_one_edit(text, seed):
    found = with_typing_errors(text, random.Random(seed), None)

    assert edits(text, found) <= 1
    letters = sum(letter.isalpha() for letter in text)
    if letters < 2:
        assert found == text


def test_long_text_has_an_error_in_every_tenth_word():
    text = "some words " * 25

    found = [with_typing_errors(text, random.Random(i), None) for i in range(9)]

    # 50 words, so 6 errors, of which two may meet in one letter.
    counts = [edits(text, other) for other in found]
    assert max(counts) == 6
    assert min(counts) >= 3


def test_typing_errors_leave_words_whole_if_asked():
    text = "a cat sleeps in the old red house of my aunt in the town"
    count = len(text.split())
    found = [
        with_typing_errors(text, random.Random(i), None, may_split_words=False)
        for i in range(300)
    ]
    assert max(len(line.split()) for line in found) == count
    # Blanks may be lost, also so.
    assert min(len(line.split()) for line in found) < count
