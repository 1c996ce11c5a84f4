"""Tests of `train.vocabulary`."""

import itertools

import numpy as np
import pytest

from keras_transformer import SubwordTokenizer
from keras_transformer.errors import UserError
from train.corpus import Pairs
from train.vocabulary import encode
from train.vocabulary import learn_vocabulary
from train.vocabulary import select
from train.vocabulary import take

PAIRS = Pairs(
    ["A red house.", "Two red cats sleep.", "The cat sees the house."] * 5,
    ["Una casa roja.", "Dos gatos rojos duermen.", "El gato ve la casa."] * 5,
)


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(PAIRS, 320)


def test_the_same_text_gives_the_same_vocabulary(model_proto):
    assert learn_vocabulary(PAIRS, 320) == model_proto


def test_encodes_as_the_exported_tokenizer_does(model_proto):
    lines = ["A red cat.", "Ein Haus – ñandú 🐈", "  two  blanks "]
    ids = encode(lines, model_proto)

    expected = SubwordTokenizer(model_proto).tokenize(lines)

    np.testing.assert_array_equal(ids.lengths, expected.row_lengths())
    np.testing.assert_array_equal(ids.flat, expected.flat_values)
    np.testing.assert_array_equal(ids.pad(np.array([1]), 40)[0, -1], 0)


def test_pads_and_takes_sequences(model_proto):
    ids = encode(PAIRS.sources[:3], model_proto)
    rows = [ids.flat[a:b] for a, b in itertools.pairwise(ids.offsets)]

    padded = ids.pad(np.array([2, 0]), ids.lengths.max() + 1)
    taken = take(ids, np.array([2, 0]))

    for row, i in enumerate([2, 0]):
        real = padded[row, : len(rows[i])]
        np.testing.assert_array_equal(real, rows[i])
        assert not padded[row, len(rows[i]) :].any()
    np.testing.assert_array_equal(
        taken.flat, np.concatenate([rows[2], rows[0]])
    )


def test_drops_and_counts_empty_and_long_pairs(model_proto):
    long = "cat " * 30
    pairs = Pairs(["A cat.", " ", "A cat.", long], ["Un gato.", "a", "", "a"])

    encoded, selection = select(pairs, model_proto, max_length=20)

    assert (len(encoded), selection.empty, selection.too_long) == (1, 2, 1)
    assert selection.kept.sources == ["A cat."]
    assert "4 pairs read, 1 kept, 2 empty and 1 too long" in selection.report(
        "x"
    )


def test_refuses_a_corpus_of_which_nothing_is_left(model_proto):
    with pytest.raises(UserError, match="no pair.*1 to 3 tokens.*15 pairs"):
        select(PAIRS, model_proto, max_length=3)


def test_refuses_a_vocabulary_that_the_text_does_not_support():
    with pytest.raises(UserError, match=r"which is \d+ pieces.*size 5000"):
        learn_vocabulary(PAIRS, 5000)


def test_refuses_a_vocabulary_without_room_for_the_characters():
    with pytest.raises(UserError, match=r"at least \d+ pieces.*size 20"):
        learn_vocabulary(PAIRS, 20)
