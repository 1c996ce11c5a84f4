"""Tests of the signs that a text was changed."""

import pytest
import sacremoses

from demo_corpus.generator import demo_corpus
from text_processing.preprocessing_signs import SIGNS


@pytest.mark.parametrize(
    ("line", "signs"),
    [
        ("Il dit : « Où ? » !", []),  # French.
        ("3 . 5 At www . x", ["tokenized", "without_stop"]),
        ("Wait ... (why ?)", []),
        ("It 's , well , here .", ["tokenized"]),
        ("It &apos;s @-@ here!", ["tokenized"]),
        ("今日 は 、 猫 。", ["tokenized"]),
        ("今日は、猫。", []),
        ("“a cat.”", ["lower_case"]),
        ("42 cats", ["lower_case", "without_stop"]),
        ("सेब।", []),
        ("ის მოვიდა.", []),
        ("ผมกินข้าว", []),
        ("42", ["without_stop"]),
        ("<2de> A cat.", []),  # The tag of the target's language.
        ("<2pt-BR> a cat.", ["lower_case"]),
    ],
)
def test_signs_of_a_line(line, signs):
    assert [name for name, sign in SIGNS.items() if sign.is_in(line)] == signs


PAIRS = demo_corpus()["validation"][:150]
MOSES = sacremoses.MosesTokenizer(lang="en")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (str, []),
        (lambda line: MOSES.tokenize(line, return_str=True), ["tokenized"]),
        (str.lower, ["lower_case"]),
        (lambda line: line.rstrip(".!?"), ["without_stop"]),
    ],
)
def test_the_sign_of_a_corpus_is_that_of_its_change(change, expected):
    for lines in zip(*PAIRS, strict=True):
        changed = [change(line) for line in lines]
        found = {
            name: sum(map(sign.is_in, changed)) / len(changed)
            for name, sign in SIGNS.items()
        }

        above = [name for name in SIGNS if found[name] > SIGNS[name].max_share]
        assert above == expected
