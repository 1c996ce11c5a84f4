"""Tests of `translate.scoring.bracket_scores` against PYEVALB."""

import random

import pytest
from PYEVALB import summary

from tests.helpers.oracles import evalb, random_trees
from text_processing.treebanks import read_trees
from text_processing.trees import Tree
from translate.scoring.bracket_scores import count_brackets, score


@pytest.fixture
def check_counts(tmp_path):
    """Compares our scores of trees and parses with PYEVALB's."""

    def read(lines):
        path = tmp_path / "trees"
        path.write_text("\n".join(lines), "utf-8")
        return list(read_trees(path))

    def check(golds, parses):
        pairs = list(zip(read(golds), read(parses), strict=True))
        theirs = [evalb.count(*texts) for texts in zip(golds, parses, strict=True)]

        for pair, result in zip(pairs, theirs, strict=True):
            assert count_brackets(*pair) == (
                result.matched_brackets,
                result.gold_brackets,
                result.test_brackets,
            )
        total, ours = summary.summary(theirs), score(pairs)
        assert ours["f1"] == pytest.approx(total.bracker_fmeasure)
        assert ours["precision"] == pytest.approx(total.bracket_prec)
        assert ours["recall"] == pytest.approx(total.bracket_recall)
        assert ours["complete_match"] == pytest.approx(total.complete_match)
        assert 40 < ours["f1"] < 95
        assert 5 < ours["complete_match"] < 60

    return check


def test_counts_what_pyevalb_counts(check_counts):
    chance = random.Random(7)
    golds = [
        # PYEVALB wants a word that is no punctuation.
        [*random_trees.draw_tree(chance, chance.randint(1, 25)), ("NN", "w")]
        for _ in range(400)
    ]
    parses = [random_trees.corrupt(chance, gold) for gold in golds]

    def write(tree):
        root = chance.choice(["TOP", "ROOT", "S1"])
        return f"({root} {random_trees.write_decorated(chance, tree)})"

    check_counts([write(t) for t in golds], [write(t) for t in parses])


def tree(text, tags):
    """Makes a tree of symbols; its words are its tags."""
    return Tree(tuple(tags.split()), tuple(tags.split()), tuple(text.split()))


def test_a_sentence_of_punctuation_alone_is_a_complete_match():
    # evalb skips it. Of the corpus, only the complete matches are others.
    marks = tree("(NP XX )NP", ".")
    wrong = tree("(S (NP XX )NP XX )S", "NN VB")
    parse = tree("(S XX XX )S", "NN VB")

    with_it = score([(marks, marks), (wrong, parse)])
    without = score([(wrong, parse)])

    assert count_brackets(marks, marks) == (0, 0, 0)
    assert with_it.pop("complete_match") == 50
    assert without.pop("complete_match") == 0
    assert with_it == without
    assert score([(marks, marks)])["f1"] == 0  # Not 0 / 0.


def test_refuses_trees_of_other_words():
    with pytest.raises(ValueError, match="the same words. .*'NN'.*'VB'"):
        count_brackets(tree("XX", "NN"), tree("XX", "VB"))


def test_the_tags_of_the_reference_say_what_is_punctuation():
    words, tags = ("a", "b"), ("NN", ".")
    gold = Tree(words, tags, ("(S", "(NP", "XX", ")NP", "XX", ")S"))
    parse = ("(S", "(NP", "XX", "XX", ")NP", ")S")

    # Without the full stop both constituents have the word `a` alone.
    for other in (tags, ("NN", "NN"), (",", "NN")):
        assert count_brackets(gold, Tree(words, other, parse)) == (2, 2, 2)
    wrong = Tree(words, ("NN", "NN"), gold.symbols)
    assert count_brackets(wrong, Tree(words, tags, parse)) == (1, 2, 2)
