"""Tests of `documents.markup.tagged_sentences`."""

import types

import pytest

from documents.markup.tagged_sentences import split_in_half


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("abcdefghi, klm opqr stuvwxyz", ["abcdefghi,", "klm opqr stuvwxyz"]),
        # Too far from the middle.
        ("ab, cdef ghij klmn opqr stuv", ["ab, cdef ghij", "klmn opqr stuv"]),
        ("abc", []),
    ],
)
def test_the_end_of_a_clause_near_the_middle_halves_a_sentence(text, halves):
    sentence = types.SimpleNamespace(
        span=(4, 4 + len(text)), segment=types.SimpleNamespace(hidden=f"Ab. {text}")
    )

    found = split_in_half(sentence)

    assert [sentence.segment.hidden[slice(*span)] for span in found] == halves
