"""Tests of `train.data.pair_filters`, and of encoding with them."""

import fractions

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from command_line.errors import UserError
from train.data import encoding
from train.data.corpus import Mixture, Pairs, demo_pairs
from train.data.corpus_statistics import find_repeats
from train.data.encoded_corpus import encode_corpus, encoded_key
from train.data.pair_filters import PairFilters, PairSelector, count_letters
from train.data.vocabulary import learn_vocabulary
from train.monitoring.corpus_and_cost_report import describe_text

DEMO = demo_pairs("validation")


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(DEMO, 400)


@pytest.fixture
def kept(model_proto, tmp_path):
    """Encodes; returns the texts that are left, and the figures."""

    def encode(pairs, **filters):
        encoded = encode_corpus(
            pairs, model_proto, 90, tmp_path, None, PairFilters(**filters)
        )
        processor = encoding.sentencepiece.SentencePieceProcessor(
            model_proto=model_proto
        )
        numbers = np.arange(len(encoded.pairs))
        sides = [
            processor.decode(ids.pad(numbers, 90).tolist())
            for ids in (encoded.pairs.sources, encoded.pairs.targets)
        ]
        return list(zip(*sides, strict=True)), encoded.figures

    return encode


def test_drops_duplicates_but_the_first(kept, monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK", 3)
    some = list(DEMO)[:7]
    # An equal source with another target is another pair.
    pairs = [*some, some[2], (some[2][0], "x"), some[6], some[2]]
    sources, targets = map(list, zip(*pairs, strict=True))

    found, figures = kept(Pairs(sources, targets), drop_duplicates=True)

    assert found == [*some, (some[2][0], "x")]
    assert figures["drop_duplicates"] == 3
    assert figures["duplicates"] == 0
    assert figures["pairs"] == 11
    assert figures["kept"] == 8


@hypothesis.given(st.lists(st.integers(0, 12), max_size=50), st.integers(1, 60))
def test_finds_repeats_whatever_the_parts(numbers, part):
    found = find_repeats(np.array(numbers, np.uint64), part)

    expected = [n in numbers[:i] for i, n in enumerate(numbers)]
    assert found.tolist() == expected


def test_duplicates_are_those_of_a_source_of_a_mixture(kept):
    corpus = Pairs(DEMO.sources[:3], DEMO.targets[:3])
    twice = Pairs(corpus.sources * 2, corpus.targets * 2)
    one = fractions.Fraction(1)

    _, figures = kept(Mixture([(twice, one), (corpus, one)]), drop_duplicates=True)

    assert (figures["kept"], figures["drop_duplicates"]) == (6, 3)


def test_drops_copies(kept):
    found, figures = kept(
        Pairs(["cat", "A cat.", "Cat"], ["cat", "Un gato.", "cat"]), drop_copies=True
    )

    assert found == [("A cat.", "Un gato."), ("Cat", "cat")]
    assert figures["drop_copies"] == 1
    assert figures["source_equals_target"] == 0


def test_drops_by_the_ratio_of_tokens(kept, model_proto):
    processor = encoding.sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    sources = ["a a a a", "a", "a a a", "a a"]
    targets = ["a a", "a a a", "a", "a a"]
    counts = [
        [len(ids) for ids in processor.encode(side)] for side in (sources, targets)
    ]
    assert counts == [[4, 1, 3, 2], [2, 3, 1, 2]]

    found, figures = kept(Pairs(sources, targets), max_length_ratio=2)

    assert found == [("a a a a", "a a"), ("a a", "a a")]
    assert figures["max_length_ratio"] == 2


@pytest.mark.parametrize(
    ("text", "script", "count"),
    [
        ("Straße 42, №", "LATIN", 6),
        ("Ａｂ", "LATIN", 2),
        ("Привет, мир!", "CYRILLIC", 9),
        ("東京タワーへ行く", "CJK", 7),  # The sound mark does not count.
        ("안녕", "HANGUL", 2),
        ("नमस्ते", "DEVANAGARI", 4),
        ("مرحبا", "ARABIC", 5),
        ("Ω", "GREEK", 1),
    ],
)
def test_counts_letters_of_scripts(text, script, count):
    counts = count_letters(text)

    assert counts[script] == count
    assert counts.most_common(1)[0][0] == script


def test_drops_sides_of_another_script(kept):
    russian = "Привет, мир"
    pairs = [
        ("A cat.", russian),
        ("A cat sleeps.", russian),
        ("A red cat.", russian),
        ("Two red cats.", "Two cats"),  # Not translated.
        (russian, russian),
        ("42!", "17"),  # No letters.
        ("Wi-Fi", "Wi-Fi это"),  # Most letters are Latin.
        ("Wi-Fi", "Wi-Fi сети"),  # As many of both.
    ]
    sources, targets = map(list, zip(*pairs, strict=True))

    found, figures = kept(Pairs(sources, targets), drop_wrong_script=True)

    assert figures["drop_wrong_script"] == 3
    assert found == [pairs[i] for i in (0, 1, 2, 5, 7)]


def test_the_script_is_that_of_a_sample_from_the_whole_corpus(monkeypatch):
    for name, value in (("SCRIPT_SAMPLE", 4), ("CHUNK", 3)):
        monkeypatch.setattr(f"train.data.pair_filters.{name}", value)
    # Of eight pairs the sample has 0, 2, 4 and 6, and 4 most of its letters.
    lines = ["aa", "a", "aa", "aaa", "дададада", "aaa", "aa", "a"]

    selector = PairSelector(PairFilters(drop_wrong_script=True), Pairs(lines, lines))

    found = dict(selector.find_dropped(0, [["a"], ["да"]], [[2], [2]]))
    assert found["drop_wrong_script"].tolist() == [True]
    found = dict(selector.find_dropped(0, [["да"], ["да"]], [[2], [2]]))
    assert found["drop_wrong_script"].tolist() == [False]


def test_a_pair_is_counted_once_and_the_report_says_why(kept):
    pairs = Pairs(["cat", "cat", "A cat.", ""], ["cat", "cat", "Un gato.", ""])

    _, figures = kept(pairs, drop_duplicates=True, drop_copies=True)

    assert (figures["drop_copies"], figures["drop_duplicates"]) == (2, 0)
    line = describe_text("training", figures)[0]
    assert line.startswith(
        "training: 4 pairs read, 1 kept, 1 empty and 0 too long dropped, 2 by "
        "--drop-copies, 0 by --drop-duplicates (the longest line"
    )
    _, figures = kept(pairs)
    line = describe_text("training", figures)[0]
    assert "0 too long dropped (the longest line" in line


def test_refuses_a_corpus_of_which_the_filters_leave_nothing(kept):
    with pytest.raises(
        UserError, match=r"no pair .* and passes --drop-copies\. Received: 1 pairs"
    ):
        kept(Pairs(["cat"], ["cat"]), drop_copies=True)


def test_each_filter_has_its_own_cache():
    def key(**filters):
        return encoded_key(DEMO, (b"model", b"model"), 90, PairFilters(**filters))

    keys = [
        key(),
        key(max_length_ratio=2.0),
        key(max_length_ratio=3.0),
        *(
            key(**{name: True})
            for name in ("drop_copies", "drop_wrong_script", "drop_duplicates")
        ),
    ]
    assert len(set(keys)) == len(keys)
