"""Tests of `export.brackets`, against PYEVALB and evalb's own rules."""

import collections
import random

import pytest

from export.brackets import count_brackets
from export.brackets import score
from keras_transformer.trees import Tree
from keras_transformer.trees import read_trees
from keras_transformer.trees import restore
from tests import treebank


def repeats_itself(tree):
    """Tells whether two constituents have the same label and words."""
    places = collections.Counter()

    def visit(node, start):
        end = start
        for child in node[1:]:
            end = end + 1 if isinstance(child, tuple) else visit(child, end)
        places[node[0], start, end] += 1
        return end

    visit(tree, 0)
    return max(places.values()) > 1


def draw_pairs(count):
    """Yields trees and corrupted ones that PYEVALB can score.

    It takes punctuation and root for what the trees have of them, and counts a
    constituent that comes twice as one where it matches, unlike evalb.
    """
    chance = random.Random(7)
    while count:
        gold = treebank.draw_tree(chance, chance.randint(1, 25))
        parse = treebank.corrupt(chance, gold)
        plain = [treebank.without_punctuation(tree) for tree in (gold, parse)]
        if plain[0] and not any(map(repeats_itself, plain)):
            count -= 1
            yield gold, parse, *plain


def test_counts_what_pyevalb_counts(tmp_path):
    parser = pytest.importorskip("PYEVALB.parser", reason="needs PYEVALB")
    scorer = pytest.importorskip("PYEVALB.scorer", reason="needs PYEVALB")
    summary = pytest.importorskip("PYEVALB.summary", reason="needs PYEVALB")
    drawn = list(draw_pairs(400))
    chance = random.Random(8)
    path = tmp_path / "gold"
    path.write_text(
        "\n".join(
            f"(ROOT {treebank.write_decorated(chance, gold)})"
            for gold, *_ in drawn
        )
    )
    pairs = [
        (gold, restore(treebank.linearise(parse), gold.words)[0])
        for gold, (_, parse, *_) in zip(read_trees(path), drawn, strict=True)
    ]
    theirs = [
        scorer.Scorer().score_trees(
            *(
                parser.create_from_bracket_string(treebank.write(tree))
                for tree in plain
            )
        )
        for *_, in_gold, in_parse in drawn
        for plain in [(in_gold, in_parse)]
    ]

    for pair, result in zip(pairs, theirs, strict=True):
        matched, gold, parsed = count_brackets(*pair)
        assert matched == result.matched_brackets
        assert matched / gold == result.recall
        assert matched / parsed == result.prec
    total, ours = summary.summary(theirs), score(pairs)
    assert ours["f1"] == pytest.approx(total.bracker_fmeasure)
    assert ours["precision"] == pytest.approx(total.bracket_prec)
    assert ours["recall"] == pytest.approx(total.bracket_recall)
    assert ours["complete_match"] == pytest.approx(total.complete_match)
    assert 40 < ours["f1"] < 95
    assert 5 < ours["complete_match"] < 60


def tree(text, tags):
    """Makes a tree of symbols; its words are its tags."""
    return Tree(tuple(tags.split()), tuple(tags.split()), tuple(text.split()))


# The examples of evalb's README: one that comes n and m times matches as often
# as both have it.
@pytest.mark.parametrize(
    ("gold", "parse", "counts"),
    [
        ("(NP " * 2 + "XX" + " )NP" * 2, "(NP XX )NP", (1, 2, 1)),
        ("(NP XX )NP", "(NP " * 3 + "XX" + " )NP" * 3, (1, 1, 3)),
        ("(NP XX )NP", "(VP XX )VP", (0, 1, 1)),
        ("(PRT XX )PRT", "(ADVP XX )ADVP", (1, 1, 1)),
        ("XX", "XX", (0, 0, 0)),
    ],
)
def test_counts_as_evalb_says(gold, parse, counts):
    assert count_brackets(tree(gold, "NN"), tree(parse, "NN")) == counts


@pytest.mark.parametrize("mark", [",", ":", "``", "''", "."])
def test_punctuation_and_brackets_of_nothing_else_do_not_count(mark):
    gold = tree("(S (NP XX )NP XX (X XX XX )X )S", f"NN {mark} {mark} {mark}")
    parse = tree("(S (NP XX XX )NP XX XX )S", f"NN {mark} {mark} {mark}")

    assert count_brackets(gold, parse) == (2, 2, 2)


def test_other_signs_do_count():
    gold = tree("(S (NP XX )NP XX )S", "NN -LRB-")
    parse = tree("(S (NP XX XX )NP )S", "NN -LRB-")

    assert count_brackets(gold, parse) == (1, 2, 2)


def test_a_corpus_counts_brackets_not_sentences():
    long = tree("(S (NP XX )NP (VP XX )VP XX )S", "NN VB .")
    wrong = tree("(S (NP XX )NP XX XX )S", "NN VB .")
    short = tree("(NP XX )NP", "NN")
    bare = tree("XX", "UH")

    results = score([(long, wrong), (short, short), (bare, bare)])

    assert results["precision"] == 100
    assert results["recall"] == pytest.approx(75)
    assert results["f1"] == pytest.approx(2 * 100 * 75 / 175)
    assert results["complete_match"] == pytest.approx(200 / 3)


def test_nothing_to_count_is_no_error():
    bare = tree("XX", "UH")

    assert score([(bare, bare)])["f1"] == 0


def test_refuses_trees_of_other_words():
    with pytest.raises(ValueError, match="the same words. .*'NN'.*'VB'"):
        count_brackets(tree("XX", "NN"), tree("XX", "VB"))
