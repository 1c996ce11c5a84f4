import threading

import pytest
from hypothesis import given, settings, strategies as st

from documents.markup.translate_markup import markup_steps
from translate.segmentation import find_sentences, split_texts


def test_a_text_that_is_not_unicode_does_not_block_the_next_one():
    with pytest.raises(ValueError, match="unicode"):
        split_texts(["\ud800"], "en", 4000)
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(split_texts(["One."], "en", 4000)), daemon=True
    )
    thread.start()
    thread.join(30)

    assert [document.sentences for document in found] == [["One."]]


def test_what_stands_between_sentences_stays():
    text = "Mr. One came. Two\u00a0went.\n\n  Three.\t\n12\n"

    (document,) = split_texts([text], "en-GB", 4000)

    assert document.filled(["1.", "2.", "3."]) == "1. 2.\n\n  3.\t\n12\n"


@settings(max_examples=40, deadline=None)
@given(
    text=st.text("aé😀 .,;") | st.text("aé😀", min_size=200),
    repeated=st.integers(1, 20),
    max_bytes=st.integers(50, 300),
)
def test_no_sentence_is_longer_than_a_batch(text, repeated, max_bytes):
    text *= repeated

    (document,) = split_texts([text], "en", max_bytes)
    (spans,) = find_sentences([text], "en", max_bytes)

    assert "".join(document.parts) == document.filled(document.sentences) == text
    for sentence in document.sentences:
        assert len(sentence.encode()) <= max_bytes
    assert [text[slice(*span)] for span in spans] == document.sentences


def test_a_symbol_at_the_end_of_a_sentence_is_no_initial():
    def split(texts):
        return find_sentences(texts, "en")

    request = next(markup_steps("I love it 😆. Two! 😆 See.", "html", split))

    assert request.inputs == ["I love it 😆.", "Two!", "😆 See."]
