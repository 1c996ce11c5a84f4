"""Tests of `documents.markup.word_alignment`."""

import numpy as np
import pytest

from documents.markup.word_alignment import find_words, piece_shares, word_attention


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¿Qué, don't?", ["¿", "Qué", ",", "don't", "?"]),
        ("हिन्दी 猫が。", ["हिन्दी", "猫", "が", "。"]),
        ("a =\u0338 b", ["a", "=\u0338", "b"]),
        ("See ⦅3⦆ (3.5 kg)…", ["See", "⦅3⦆", "(", "3.5 kg", ")", "…"]),
        ("", []),
    ],
)
def test_words_are_letters_that_belong_together(text, expected):
    assert [text[word.start : word.end] for word in find_words(text)] == expected


def test_weights_of_words_come_of_their_pieces():
    # Two pieces a word; EOS is not a word.
    pieces = [b"\xe2\x96\x81bl", b"ue", b"\xe2\x96\x81dog", b"</s>"]
    target = [b"\xe2\x96\x81d", b"og", b"\xe2\x96\x81<", b"<0xC3>", b"<0xA9>"]
    rows = [[0, 0, 0.9, 0.1], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.5, 0], [0, 0, 0, 1]]
    attention = np.array([*rows, rows[-1]])

    found = word_attention(attention, "blue dog", pieces, "dog <é", target)

    # A later piece counts 0.3 of the one before.
    looks = np.array([[0.3 / 1.3, 1 / 1.3], [0.5, 0.5]])
    looks /= looks.sum(axis=0)
    looks /= looks.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, [*looks, [0, 0]], atol=1e-12)


def test_unknown_characters_do_not_shift_the_words_after_them():
    pieces = [b"<unk>", b"<unk>", b"\xe2\x96\x81the", b"\xe2\x96\x81cat"]
    text = "☺ ☺ the cat"
    found = word_attention(np.eye(4), text, pieces, text, pieces)
    np.testing.assert_allclose(found, np.eye(4))


def test_letters_are_scaled_where_pieces_have_fewer_than_the_text():
    """Five letters of text to three of pieces: the third is the fourth."""
    shares = piece_shares([b"ab", b"c"], "abc de")

    np.testing.assert_array_equal(shares, [[1, 0], [0, 1]])
