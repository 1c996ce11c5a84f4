import fractions
import itertools

import hypothesis
import hypothesis.strategies as st
import pytest

from keras_transformer import SubwordTokenizer
from text_processing.placeholders import (
    PLACEHOLDERS,
    find_untranslatable_spans,
    replace_in_pair,
)
from train.data.corpus import Mixture, Pairs, demo_pairs
from train.data.derived_corpora import with_placeholders
from train.data.vocabulary import learn_vocabulary

PARTS = ("{0}", "www.a.org", "5 kg", "word", ".", "a@b.org", "%s", "7")


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("{0} in {1}", "{1} de {0}"), ("⦅0⦆ in ⦅1⦆", "⦅1⦆ de ⦅0⦆")),
        # Text that one side lacks, or has more often, stays.
        (("5 kg, 3 m", "3 m, 6 kg"), ("5 kg, ⦅0⦆", "⦅0⦆, 6 kg")),
        (("{0} {0}", "{0}"), ("{0} {0}", "{0}")),
        (("%s and %s", "%s y %s"), ("⦅0⦆ and ⦅1⦆", "⦅0⦆ y ⦅1⦆")),
        (("⦅4⦆ {0}", "{0}"), ("⦅4⦆ {0}", "{0}")),
    ],
)
def test_replaces_what_both_sides_share(pair, expected):
    assert replace_in_pair(*pair) == expected


def test_eleven_are_too_many():
    text = " ".join(f"{{{n}}}" for n in range(11))

    assert replace_in_pair(text, text) == (text, text)


@hypothesis.given(*[st.lists(st.sampled_from(PARTS), max_size=9)] * 2)
def test_both_sides_get_the_same_placeholders_for_the_same(left, right):
    pair = " ".join(left), " ".join(right)
    found = replace_in_pair(*pair)

    # Put back by the source's order, they are the pair again.
    names = [name for name in PLACEHOLDERS if name in found[0]]
    assert sorted(names) == [name for name in PLACEHOLDERS if name in found[1]]
    spans = [pair[0][start:end] for start, end in find_untranslatable_spans(pair[0])]
    shared = [part for part in spans if left_as_often(part, pair)]
    again = list(found)
    for name, part in zip(names, shared, strict=True):
        again = [side.replace(name, part) for side in again]
    assert tuple(again) == pair


def left_as_often(part, pair):
    counts = [
        [side[start:end] for start, end in find_untranslatable_spans(side)].count(part)
        for side in pair
    ]
    return counts[0] == counts[1]


def test_each_is_one_piece_of_the_vocabulary():
    pairs = demo_pairs("validation")
    corpus = Pairs(
        [f"{text} {{0}}" for text in pairs.sources],
        [f"{{0}} {text}" for text in pairs.targets],
    )
    marked = with_placeholders(corpus)

    some = [target for _, target in itertools.islice(marked, 4)]
    # Every other one.
    assert some == [
        f"{('⦅0⦆', '{0}')[number % 2]} {target}"
        for number, target in enumerate(pairs.targets[:4])
    ]
    assert len(marked) == len(corpus)
    assert marked.digest() != corpus.digest()
    assert marked.languages() == corpus.languages()
    tokenizer = SubwordTokenizer(learn_vocabulary(marked, 400))
    ids = tokenizer.tokenize(["A ⦅3⦆, ⦅9⦆."])
    pieces = tokenizer.id_to_piece(ids.flat_values).numpy().tolist()
    assert "⦅3⦆".encode() in pieces
    assert "⦅9⦆".encode() in pieces
    assert tokenizer.detokenize(ids).numpy() == ["A ⦅3⦆, ⦅9⦆.".encode()]


def test_a_mixture_keeps_its_weights():
    corpus = Pairs(["{0}"], ["{0}"])
    weight = fractions.Fraction(5, 2)

    marked = with_placeholders(Mixture([(corpus, weight), (corpus, 1)]))

    assert [weight for _, weight in marked.parts()] == [weight, 1]
    assert list(marked) == [("⦅0⦆", "⦅0⦆")] * 2
    assert marked.symbols() == list(PLACEHOLDERS)
