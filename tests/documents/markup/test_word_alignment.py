"""Tests of `documents.markup.word_alignment`."""

import numpy as np

from documents.markup.word_alignment import piece_shares


def test_letters_are_scaled_where_pieces_have_fewer_than_the_text():
    """Five letters of text to three of pieces: the third is the fourth."""
    shares = piece_shares([b"ab", b"c"], "abc de")

    np.testing.assert_array_equal(shares, [[1, 0], [0, 1]])
