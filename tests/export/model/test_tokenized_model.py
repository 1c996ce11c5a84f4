"""Tests of `export.model.tokenized_model`: where texts are cut."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from export.bundle.run_loading import read_run
from export.bundle.warmup_requests import make_sentence
from export.model.tokenized_model import TextModel, cut_bytes
from tests.helpers.example_sentences import NASTY, SENTENCES


@pytest.fixture(scope="module")
def text_model(run_dir):
    return TextModel(*read_run(run_dir))


@hypothesis.settings(max_examples=50, derandomize=True, deadline=None)
@hypothesis.given(
    texts=strategies.lists(strategies.text(max_size=9), max_size=4),
    most=strategies.integers(3, 20),
)
def test_text_is_cut_at_a_character(texts, most):
    encoded = [text.encode() for text in texts]
    strings = tf.constant(encoded, tf.string, [len(texts)])

    found, was_cut = cut_bytes(strings, most)

    assert was_cut.numpy().tolist() == [len(text) > most for text in encoded]
    for text, whole in zip(found.numpy(), encoded, strict=True):
        assert whole.startswith(text)
        text.decode("utf-8")
        assert len(text) > most - 4 or len(text) == len(whole)


@pytest.mark.parametrize("text", [*SENTENCES, *NASTY, "𝐞\u0301\u0302", "ﷺ", "x"])
def test_tokens_are_those_of_the_whole_text(text_model, text):
    """Whatever a text is made of, but for blanks and what is nothing."""
    text = text.encode() if isinstance(text, str) else text
    if not text.strip(b" \0\t\n"):
        return
    count = 2 + 2 * text_model.max_bytes // len(text)
    many = b" ".join([text] * count)
    limit = text_model.sequence_length
    words = tf.constant([many.replace(b"\0", b" ")])
    whole = text_model.tokenizer.tokenize(words)[0]

    ids, (length,), (truncated,) = text_model.tokenize(tf.constant([many]))

    assert truncated
    assert length == limit
    np.testing.assert_array_equal(ids[0, :-1], whole[: limit - 1])


def test_a_text_that_just_fits_is_not_cut(text_model):
    limit = text_model.sequence_length
    texts = [make_sentence(text_model.tokenizer, limit + n) for n in (0, 1)]

    _, lengths, truncated = text_model.tokenize(tf.constant(texts))

    assert lengths.numpy().tolist() == [limit, limit]
    assert truncated.numpy().tolist() == [False, True]


def test_what_stands_after_very_many_blanks_is_cut_and_told(text_model):
    blanks = b" " * text_model.max_bytes

    _, lengths, truncated = text_model.tokenize(
        tf.constant([b"a" + blanks + b"b", b"a"])
    )

    assert lengths.numpy().tolist() == [2, 2]
    assert truncated.numpy().tolist() == [True, False]


def test_few_bytes_become_tokens_at_a_time(text_model, monkeypatch):
    texts = [*(s.encode() for s in SENTENCES), b"", *NASTY, "ﷺ".encode() * 999]
    whole = text_model.tokenize(tf.constant(texts))
    read = []
    tokenize = text_model.tokenizer.tokenize

    def noted(strings):
        read.append([len(text) for text in strings.numpy()])
        return tokenize(strings)

    monkeypatch.setattr(text_model.tokenizer, "tokenize", noted)
    monkeypatch.setattr("export.model.tokenized_model.MAX_CHUNK_BYTES", 150)
    parts = text_model.tokenize(tf.constant(texts))

    assert sum(map(len, read)) == len(texts)
    assert all(len(part) == 1 or sum(part) <= 150 for part in read)
    assert 3 < len(read) < len(texts)
    for part, expected in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(part, expected)
