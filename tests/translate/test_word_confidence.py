"""Tests of `translate.word_confidence`, against sentencepiece."""

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings, strategies as st

from translate.word_confidence import group_words, pieces_to_words

PIECES = ["▁Two", "▁c", "ats", "▁sle", "ep", ".", "</s>"]


@pytest.fixture(scope="module")
def tokenizer(run_dir):
    path = str(run_dir / "tokenizer.model")
    return sentencepiece.SentencePieceProcessor(model_file=path)


def as_bytes(pieces, length=None):
    padding = [""] * ((length or len(pieces)) - len(pieces))
    return np.array([p.encode() for p in [*pieces, *padding]], object)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=30) | st.text("ab .é猫ก่🐈", max_size=12))
def test_words_are_the_text_that_the_library_reads(tokenizer, text):
    pieces = tokenizer.encode(text, out_type=str)

    words = pieces_to_words(as_bytes([*pieces, "</s>"], len(pieces) + 3))

    found = "".join(" " * word["space"] + word["text"] for word in words)
    known = "<unk>" not in pieces
    assert not known or found.strip() == tokenizer.decode(pieces).strip()
    indices = [index for word in words for index in word["indices"]]
    assert indices == list(range(len(pieces)))


def test_a_word_looks_where_its_pieces_look():
    source = as_bytes(["▁Dos", "▁ga", "tos", "</s>"], 6)
    target = as_bytes(PIECES)
    random = np.random.default_rng(7)
    attention = random.dirichlet(np.ones(6), size=len(PIECES))
    logs = -random.uniform(0, 2, size=len(PIECES))

    found = group_words(source, target, attention, logs)

    assert [w["text"] for w in found["source"]] == ["Dos", "gatos"]
    words = found["target"]
    assert [w["text"] for w in words] == ["Two", "cats", "sleep."]
    assert [w["space"] for w in words] == [False, True, True]
    cats = attention[1:3].sum(axis=0) / 2
    np.testing.assert_allclose(
        words[1]["weights"], [cats[0], cats[1] + cats[2]], atol=6e-4
    )
    np.testing.assert_allclose(
        words[2]["probability"], np.exp(logs[3] + logs[4] + logs[5]), atol=6e-4
    )
    assert "indices" not in words[0]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("▁ 我 喜欢 猫 。", ["我", "喜欢", "猫。"]),
        ("▁ <0xE7> <0x8C> <0xAB> が", ["猫", "が"]),
        ("▁แมว นอน ▁a", ["แมว", "นอน", "a"]),
        ("▁a ▁ ▁b", ["a", "", "b"]),
        ("▁<0xFF>", ["<0xFF>"]),
        ("<0xFF> a", ["a"]),
        ("<0xEF> <0xBF> <0xBD> a", ["\N{REPLACEMENT CHARACTER}a"]),
        ("", []),
    ],
)
def test_scripts_without_blanks_have_words_too(pieces, words):
    found = pieces_to_words(as_bytes(pieces.split(" ")))

    assert [word["text"] for word in found] == words
