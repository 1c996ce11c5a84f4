"""Tests of `train.data.vocabulary`."""

import numpy as np
import pytest

from command_line.errors import UserError
from train.data.corpus import Pairs
from train.data.vocabulary import Ids, learn_vocabulary, sample_text, take

PAIRS = Pairs(
    ["A red house.", "Two red cats sleep.", "The cat sees the house."] * 5,
    ["Una casa roja.", "Dos gatos rojos duermen.", "El gato ve la casa."] * 5,
)


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(PAIRS, 320)


def test_the_same_text_gives_the_same_vocabulary(model_proto):
    assert learn_vocabulary(PAIRS, 320) == model_proto


def test_a_large_corpus_is_sampled_evenly():
    corpus = Pairs([str(i) for i in range(10)], ["x"] * 10)

    assert sample_text(corpus, 10) == list(corpus)
    assert [source for source, _ in sample_text(corpus, 4)] == ["0", "3", "6", "9"]


def test_pads_and_takes_sequences():
    rows = [[5, 6, 1], [7, 1], [8, 9, 10, 1]]
    ids = Ids(np.concatenate(rows), np.array([0, 3, 5, 9]))

    padded = ids.pad(np.array([2, 0]), 5)
    taken = take(ids, np.array([2, 0]))

    assert padded.tolist() == [[8, 9, 10, 1, 0], [5, 6, 1, 0, 0]]
    assert padded.dtype == np.int32
    assert taken.flat.tolist() == [8, 9, 10, 1, 5, 6, 1]
    assert taken.lengths.tolist() == [4, 3]


def test_refuses_a_vocabulary_that_the_text_does_not_support():
    with pytest.raises(UserError, match=r"which is \d+ subwords.*size 5000"):
        learn_vocabulary(PAIRS, 5000)


def test_refuses_a_corpus_without_pairs():
    with pytest.raises(UserError, match=r"must have pairs. Received: none"):
        learn_vocabulary(Pairs([], []), 300)


def test_refuses_a_vocabulary_without_room_for_the_characters():
    with pytest.raises(UserError, match=r"at least \d+ subwords.*size 20"):
        learn_vocabulary(PAIRS, 20)
