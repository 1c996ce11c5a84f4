"""Tests of `train.data.sources`."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from command_line.errors import UserError
from train.data.corpus import Mixture
from train.data.corpus import Pairs
from train.data.encoded_corpus import encode_corpus
from train.data.sources import read_mixture
from train.data.vocabulary import learn_vocabulary

SMALL = Pairs(["A cat.", "Two cats.", "A dog."], ["Un gato.", "Dos.", "Perro."])
LARGE = Pairs(["A house."] * 8, ["Una casa."] * 8)


@pytest.fixture
def files(tmp_path):
    """The folder of two small parallel files."""
    for name, text in (("a.en", "one\ntwo\n"), ("a.es", "uno\ndos\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def write(folder, content):
    path = folder / "mixture.json"
    path.write_text(
        content if isinstance(content, str) else json.dumps(content)
    )
    return path


def test_parts_come_one_behind_the_other():
    mixture = Mixture([(SMALL, Fraction(5, 2)), (LARGE, Fraction(1, 4))])

    assert list(mixture) == [*SMALL, *LARGE]
    assert len(mixture) == 11
    assert list(mixture.repeats()) == [2, 3, 2] + [0, 0, 0, 1] * 2


@settings(deadline=None)
@given(
    st.integers(1, 40),
    st.fractions(Fraction(1, 50), 20, max_denominator=50),
)
def test_a_pair_comes_as_often_as_its_weight_says(count, weight):
    corpus = Pairs(["x"] * count, ["y"] * count)

    repeats = list(Mixture([(corpus, weight)]).repeats())

    assert sum(repeats) == weight * count // 1
    assert {abs(n - weight) < 1 for n in repeats} == {True}


def test_the_digest_sees_text_order_and_weight():
    parts = [(SMALL, Fraction(2)), (LARGE, Fraction(1))]
    digests = {
        Mixture(parts).digest(),
        Mixture(parts[::-1]).digest(),
        Mixture([(SMALL, Fraction(3)), parts[1]]).digest(),
    }

    assert len(digests) == 3


def test_repeats_stay_with_their_pairs(tmp_path):
    corpus = Pairs(["A cat.", "", "Two cats.", "A dog."], ["x", "y", "z", "w"])
    proto = learn_vocabulary(LARGE, 280)
    mixture = Mixture([(corpus, Fraction(3, 2)), (LARGE, Fraction(1, 2))])

    encoded = encode_corpus(mixture, proto, 90, tmp_path)

    # 1, 2, 1, 2 and 0, 1, …: the empty line is the second.
    np.testing.assert_array_equal(
        encoded.pairs.repeats, [1, 1, 2] + [1] * (len(LARGE) // 2)
    )
    assert encoded.figures["left_out"] == 4
    assert encoded.figures["empty"] == 1


def test_reads_files_and_sets_beside_the_mixture(files):
    path = write(
        files,
        [
            {"source": "a.en", "target": "a.es", "weight": 2.1},
            {"dataset": "demo", "split": "test"},
        ],
    )

    mixture = read_mixture(path, files)

    assert list(mixture)[:2] == [("one", "uno"), ("two", "dos")]
    assert len(mixture) == 502
    repeats = list(mixture.repeats())
    assert repeats[:2] == [2, 2]
    assert repeats[2:] == [1] * 500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "mixture.json must be JSON"),
        ("{}", "must hold a list of sources"),
        ("[]", "must hold a list of sources"),
        ([3], "source 1 must name .*Received: 3"),
        ([{"source": "a.en"}], 'source 1 must name "source" and "target"'),
        (
            [{"dataset": "demo", "source": "a.en", "target": "a.es"}],
            'source 1 must name "source" and "target", or "dataset"',
        ),
        ([{"dataset": "demo", "wieght": 2}], "wieght"),
        ([{"dataset": 3}], r"must be of strings. Received: \[3\]"),
        ([{"dataset": "demo"}, {"dataset": "x"}], "demo or tfds:.*Received: x"),
        (
            [{"dataset": "demo", "weight": 0}],
            '"weight" of .*source 1 must be a number above 0. Received: 0',
        ),
        ([{"dataset": "demo", "split": "x"}], "test, unseen.*split x"),
        (
            [{"dataset": "demo", "source_language": "es"}],
            "from en.*source language es",
        ),
        ([{"dataset": "demo", "weight": True}], "above 0. Received: True"),
        ([{"dataset": "demo", "weight": "2"}], "above 0. Received: '2'"),
        ('[{"dataset": "demo", "weight": NaN}]', "above 0. Received: nan"),
    ],
)
def test_refuses_what_is_no_mixture(files, content, message):
    with pytest.raises(UserError, match=message) as error:
        read_mixture(write(files, content), files)

    assert "\n" not in str(error.value)


def test_refuses_a_mixture_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file: .*mixture"):
        read_mixture(tmp_path / "mixture", tmp_path)
