import itertools
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest
import sentencepiece

from keras_transformer import SubwordTokenizer
from text_processing.placeholders import (
    PLACEHOLDERS,
    find_untranslatable_spans,
    replace_in_pair,
)
from train.data.corpus import Mixture, Pairs, demo_pairs
from train.data.derived_corpora import (
    InLanguages,
    Reversed,
    Tagged,
    WithPlaceholders,
    find_tags,
    with_temperature,
)
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
    marked = WithPlaceholders(corpus)

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


DEMO = demo_pairs("validation")
GERMAN, FRENCH = (Tagged(InLanguages(DEMO, ("en", code))) for code in ("de", "pt-BR"))
TAGGED = Mixture([(Tagged(WithPlaceholders(GERMAN._corpus)), 1), (FRENCH, 1)])


def test_sources_begin_with_the_tag_of_the_target_language():
    corpus = Pairs(["A dog.", " ", ""], ["Ein Hund.", "x", "y"])
    tagged = Tagged(InLanguages(corpus, ("en", "de")))

    # A source without text gets none, so that its pair is dropped.
    assert list(tagged) == [("<2de> A dog.", "Ein Hund."), (" ", "x"), ("", "y")]
    assert tagged.languages() == ("en", "de")
    digests = {corpus.digest(), tagged.digest(), GERMAN.digest(), FRENCH.digest()}
    assert len(digests) == 4
    assert Mixture([(GERMAN, 1), (FRENCH, 1)]).languages() == ("en", "")
    assert Mixture([(GERMAN, 1), (Reversed(GERMAN), 1)]).languages() == ("", "")
    found = find_tags(TAGGED)
    assert found.target_tags == {"de": "▁<2de>", "pt-BR": "▁<2pt-BR>"}
    assert found.find("en", "de") == (["▁<2de>"], [])
    assert find_tags(corpus) is None


@pytest.fixture(scope="module")
def tagged_model():
    proto = learn_vocabulary(TAGGED, 420)
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


@hypothesis.example("")
@hypothesis.example(" ")
@hypothesis.example("\u0338<2de> ▁<2de> ⦅0⦆")
@hypothesis.given(st.text() | st.lists(st.sampled_from([*PARTS, " ", "▁", "⦅0⦆"])))
def test_a_tag_is_one_subword_before_those_of_the_sentence(tagged_model, parts):
    text = "".join(parts)
    for tag in find_tags(TAGGED).target_tags.values():
        tagged = tagged_model.encode(f"{tag[1:]} {text}", out_type=str)

        assert tagged == [tag, *tagged_model.encode(text, out_type=str)]


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(1, 10**6), st.fractions(Fraction(1, 9), 9)), min_size=1
    ),
    st.floats(0.5, 100),
)
def test_shares_are_those_of_the_temperature(sizes, temperature):
    before = [(range(n), weight) for n, weight in sizes]

    after = with_temperature(before, temperature)

    counts = [float(weight) * len(corpus) for corpus, weight in after]
    shares = [float(w) * n ** (1 / temperature) for n, w in sizes]
    total = float(sum(w * n for n, w in sizes))
    expected = [total * share / sum(shares) for share in shares]
    assert counts == pytest.approx(expected, rel=1e-5)
    assert with_temperature(before, 1) == before
