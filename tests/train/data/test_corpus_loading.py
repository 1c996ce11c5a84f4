import json
from fractions import Fraction

import numpy as np
import pytest

from command_line.errors import UserError
from train.data import encoded_corpus
from train.data.corpus import Mixture, Pairs
from train.data.corpus_loading import read_mixture
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary

SMALL = Pairs(["A cat.", "Two cats.", "A dog."], ["Un gato.", "Dos.", "Perro."])
LARGE = Pairs(["A house."] * 8, ["Una casa."] * 8)


@pytest.fixture
def files(tmp_path):
    for name, text in (("a.en", "one\ntwo\n"), ("a.es", "uno\ndos\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


def write(folder, content):
    path = folder / "mixture.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_parts_come_one_behind_the_other():
    mixture = Mixture([(SMALL, Fraction(5, 2)), (LARGE, Fraction(1, 4))])

    assert list(mixture) == [*SMALL, *LARGE]
    assert len(mixture) == 11


def test_the_digest_sees_text_order_and_weight():
    parts = [(SMALL, Fraction(2)), (LARGE, Fraction(1))]
    digests = {
        Mixture(parts).digest(),
        Mixture(parts[::-1]).digest(),
        Mixture([(SMALL, Fraction(3)), parts[1]]).digest(),
    }

    assert len(digests) == 3


def test_parts_are_encoded_once_whatever_their_weights(tmp_path, monkeypatch):
    corpus = Pairs(["A cat.", "", "Two cats.", "A dog."], ["x", "y", "z", "w"])
    proto = learn_vocabulary(Mixture([(corpus, 1), (LARGE, 1)]), 290)

    def encode(*weights):
        parts = zip((corpus, LARGE), map(Fraction, weights), strict=True)
        return encode_corpus(Mixture(list(parts)), proto, 90, tmp_path)

    first = encode("3/2", "1/2")
    monkeypatch.setattr(encoded_corpus, "encode_into", None)
    second = encode("2", "1/3")

    assert first.pairs.parts == ((3, Fraction(3, 2)), (8, Fraction(1, 2)))
    assert second.pairs.parts == ((3, Fraction(2)), (8, Fraction(1, 3)))
    assert first.figures == second.figures
    # One behind the other, as if they were one text.
    order = np.array([10, 0, 3, 2, 5])
    whole = Pairs([*corpus.sources, *LARGE.sources], [*corpus.targets, *LARGE.targets])
    monkeypatch.undo()
    joined = encode_corpus(whole, proto, 90, tmp_path)
    for ids, others in (
        (first.pairs.sources, joined.pairs.sources),
        (first.pairs.targets, joined.pairs.targets),
    ):
        np.testing.assert_array_equal(ids.lengths, others.lengths)
        np.testing.assert_array_equal(ids.pad(order, 9), others.pad(order, 9))
    # The figures add up, but that a copy elsewhere is not found.
    assert first.figures["empty"] == 1
    assert first.figures == joined.figures
    np.testing.assert_array_equal(
        np.concatenate(first.hashes), np.concatenate(joined.hashes)
    )


def test_reads_files_and_sets_beside_the_mixture(files):
    path = write(
        files,
        [
            {"source": "a.en", "target": "a.es", "weight": 2.1},
            {"dataset": "demo", "split": "test"},
        ],
    )

    (first, second), has_tags = read_mixture(path, files)

    assert list(first.corpus) == [("one", "uno"), ("two", "dos")]
    assert first.corpus.languages() == ("en", "es")
    assert len(second.corpus) == 500
    assert (first.weight, second.weight) == (Fraction("2.1"), 1)
    assert first.validation is None
    assert not has_tags


def test_a_source_names_its_languages_and_validation_files(files):
    spanish = {"source": "a.en", "target": "a.es", "target_language": "es"}
    spanish |= {"validation_source": "a.es", "validation_target": "a.en"}
    (files / "b.tsv").write_text("one\tun\n")
    columns = {"source_language": "1", "target_language": "2"}
    numbered = {"pairs": "b.tsv", "validation_pairs": "b.tsv", **columns}

    (first, second), has_tags = read_mixture(write(files, [spanish, numbered]), files)

    assert list(first.validation) == [("uno", "one"), ("dos", "two")]
    assert first.validation.languages() == first.corpus.languages() == ("en", "es")
    assert list(second.validation) == [("one", "un")]
    assert second.corpus.languages() == ("", "")
    assert not has_tags  # Numbers of columns are no languages.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "mixture.json must be JSON"),
        ("{}", "must hold a list of sources"),
        ([3], "source 1 must name .*Received: 3"),
        ([{"source": "a.en"}], 'source 1 must name "source" and "target"'),
        (
            [{"dataset": "demo", "source": "a.en", "target": "a.es"}],
            'source 1 must name "source" and "target", or "pairs"',
        ),
        ([{"dataset": "demo", "wieght": 2}], "wieght"),
        ([{"dataset": 3}], r"must be of strings. Received: \[3\]"),
        ([{"dataset": "demo"}, {"dataset": "x"}], "demo, tfds:.*Received: x"),
        (
            [{"dataset": "demo", "weight": 0}],
            '"weight" of .*source 1 must be a number above 0. Received: 0',
        ),
        ([{"dataset": "demo", "split": "x"}], "test, unseen.*split x"),
        ([{"dataset": "demo", "source_language": "es"}], "from en to es.*s es, None"),
        ('[{"dataset": "demo", "weight": NaN}]', "above 0. Received: nan"),
        (
            [{"dataset": "demo", "validation_source": "a.en"}],
            'and "validation_source" and "validation_target"',
        ),
        (
            [{"source": "a.en", "target": "a.es", "split": "x"}],
            'source 1 must name "source" and "target"',
        ),
        (
            [
                {"source": "a.en", "target": "a.es", "target_language": code}
                for code in ("es", "fr", "../x")
            ],
            r'must have a code.*Received: \["es", "fr", "../x"\]',
        ),
        (
            [
                *({"dataset": "demo", "target_language": "es"},),
                *({"dataset": "demo"}, {"dataset": "demo"}),
                {"source": "a.en", "target": "a.es", "target_language": "fr"},
            ],
            r'Received: \["es", null, null, "fr"\]',
        ),
        (
            [
                {"source": "a.en", "target": "a.es"},
                {"source": "a.en", "target": "a.es", "target_language": "fr"},
            ],
            r'must have a code.*Received: \[null, "fr"\]',
        ),
    ],
)
def test_refuses_what_is_no_mixture(files, content, message):
    with pytest.raises(UserError, match=message) as error:
        read_mixture(write(files, content), files)

    assert "\n" not in str(error.value)


def test_refuses_a_mixture_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file: .*mixture"):
        read_mixture(tmp_path / "mixture", tmp_path)
