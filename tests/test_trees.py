"""Tests of `keras_transformer.trees`."""

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_transformer.errors import UserError
from keras_transformer.trees import Tree
from keras_transformer.trees import read_trees
from keras_transformer.trees import restore
from tests import treebank

CAT = "(S (NP (DT A) (NN cat)) (VP (VBZ sleeps)))"
CAT_TREE = Tree(
    ("A", "cat", "sleeps"),
    ("DT", "NN", "VBZ"),
    ("(S", "(NP", "XX", "XX", ")NP", "(VP", "XX", ")VP", ")S"),
)


@pytest.fixture
def trees_of(tmp_path):
    """Writes a file and reads the trees in it."""

    def read(content):
        path = tmp_path / "trees"
        path.write_bytes(
            content.encode() if isinstance(content, str) else content
        )
        return list(read_trees(path))

    return read


@pytest.mark.parametrize(
    "content",
    [
        CAT,
        f"( {CAT})\n",
        f"(ROOT {CAT})",
        f"(TOP\n  {CAT}\n)\n\n",
        f"( (TOP {CAT}))",
        f"(ROOT (S1 {CAT}))",
        CAT.replace(" ", "\r\n\t"),
        CAT.replace(" ", "")
        .replace("DTA", "DT A")
        .replace("NNc", "NN c")
        .replace("VBZs", "VBZ s"),
        CAT.replace("NP", "NP-SBJ-1").replace("VP", "VP=2"),
        CAT.replace("(VBZ", "(NP-SBJ (-NONE- *T*-1)) (-NONE- 0) (VBZ"),
        gzip.compress(CAT.encode(), mtime=0),
        f"\ufeff{CAT}",
    ],
)
def test_reads_the_forms_that_treebanks_have(trees_of, content):
    assert trees_of(content) == [CAT_TREE]


def test_reads_one_tree_behind_the_other(trees_of):
    assert (
        trees_of(f"{CAT} {CAT}\n\n(ROOT {CAT}\n)(TOP{CAT})") == [CAT_TREE] * 4
    )


def test_keeps_what_stands_beside_each_other_below_the_root(trees_of):
    (tree,) = trees_of("(ROOT (NP (NN One)) (. .) (S (NN two)))")

    assert tree.symbols == ("(NP", "XX", ")NP", "XX", "(S", "XX", ")S")
    assert str(tree) == "(TOP (NP (NN One)) (. .) (S (NN two)))"


def test_a_single_word_is_a_tree(trees_of):
    assert (
        trees_of("(UH Yes)(ROOT (UH Yes))")
        == [Tree(("Yes",), ("UH",), ("XX",))] * 2
    )


def test_a_sentence_of_traces_has_no_words(trees_of):
    (tree,) = trees_of("(ROOT (S (NP (-NONE- *))))")

    assert tree == Tree((), (), ())


def test_words_hold_parentheses_as_they_are(trees_of):
    (tree,) = trees_of("(S (-LRB- -LRB-) (NN cat-LRB-s-RRB-) (-RRB- -RRB-))")

    assert tree.words == ("(", "cat(s)", ")")
    assert tree.tags == ("-LRB-", "NN", "-RRB-")
    assert str(tree) == (
        "(TOP (S (-LRB- -LRB-) (NN cat-LRB-s-RRB-) (-RRB- -RRB-)))"
    )


def test_a_tag_has_no_slash(trees_of):
    (tree,) = trees_of("(S (NN/VB run))")

    assert tree.tags == ("NN|VB",)
    assert restore(tree.linearize(), tree.words) == (tree, frozenset())


def test_words_are_as_they_were_before_the_treebank_wrote_them(trees_of):
    (tree,) = trees_of(r"(NP (CD 1\/2) (SYM \*) (NN -LCB-a-RSB-) (NN \a))")

    assert tree.words == ("1/2", "*", "{a]", r"\a")


def test_a_hard_space_is_part_of_a_word(trees_of):
    (tree,) = trees_of("(S (CD 10\u00a0000) (NN\u3000 x\u2028y))")

    assert tree.words == ("10\u00a0000", "x\u2028y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("(S (NN a)", r"1 are open at the end. Received: .*line 1"),
        (f"{CAT}\n\n(S (NN a)\n", "open at the end. Received: .*line 3"),
        (f"{CAT}\n{CAT})\n", r"must begin with \(. Received: .*line 2, \)"),
        (f"{CAT}\nhello\n", r"must begin with \(. .*line 2, hello"),
        ("(S (NN a) b)", "label and brackets, or a tag and a word.*… b"),
        ("\n(NP the cat)", r"tag and a word.*line 2, … \( NP the cat \)"),
        ("(NP (NN))", r"tag and a word.*… \( NN \) \)"),
        ("()", "tag and a word"),
        ("(())", "tag and a word"),
        ("(ROOT)", "tag and a word"),
        ("(S ((NN a)))", r"tag and a word.*… \( \( NN a"),
        (f"(ROOT {CAT}\n(ROOT {CAT}))", "a whole tree. .*line 1, ROOT within"),
        ("(S (TOP (NN a)))", "TOP must stand around a whole tree"),
        ("\n\n", "must hold one. Received: .*trees"),
        (b"", "may not be empty"),
        (b"(S (NN \xff))", "must be UTF-8.*line 1, byte 0xff"),
    ],
)
def test_refuses_what_is_no_tree(trees_of, content, message):
    with pytest.raises(UserError, match=message):
        trees_of(content)


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file: .*none"):
        list(read_trees(tmp_path / "none"))


@pytest.mark.parametrize("seed", range(20))
def test_trees_come_back_but_for_what_is_stripped(trees_of, seed):
    chance = random.Random(seed)
    drawn = [
        treebank.draw_tree(chance, chance.randint(1, 30)) for _ in range(10)
    ]
    decorated = [f"(ROOT {treebank.write_decorated(chance, t)})" for t in drawn]

    trees = trees_of("\n".join(decorated))

    for tree, expected in zip(trees, drawn, strict=True):
        assert tree.linearize() == treebank.linearise(expected)
        assert str(tree) == f"(TOP {treebank.write(expected)})"
        assert restore(tree.linearize(), tree.words) == (tree, frozenset())
        assert sorted(tree.constituents()) == sorted(spans(expected))


def spans(tree, start=0):
    """Returns label, first word and end of each constituent, by recursion."""
    found = [(tree[0], start, start + len(treebank.words(tree)))]
    for child in tree[1:]:
        if isinstance(child, list):
            found += spans(child, start)
        start += len(treebank.words(child))
    return found


@pytest.mark.parametrize(
    ("text", "mended", "faults"),
    [
        ("(S (NP a/A b/B )NP c/C )S", "(S (NP A B )NP C )S", ""),
        ("", "XX XX XX", "leaves"),
        ("(S (NP a/A b/B", "(S (NP A B )NP XX )S", "brackets leaves"),
        ("(S (NP a/A b/B )S", "(S (NP A B )NP XX )S", "brackets leaves"),
        ("(S a/A (NP b/B c/C )NP", "(S A (NP B C )NP )S", "brackets"),
        ("(S a/A b/B c/C )S )S )NP", "(S A B C )S", "brackets"),
        (")NP a/A b/B c/C", "A B C", "brackets"),
        ("(S (NP a/A b/B )VP c/C )S", "(S (NP A B )NP C )S", "labels"),
        ("(S a/A b/B c/C d/D )S", "(S A B C )S", "leaves"),
        ("(S a/A b/B c/C (NP d/D )NP )S", "(S A B C )S", "empty leaves"),
        ("(S a/A )S (NP b/B )NP", "(S A )S (NP B XX )NP", "leaves"),
        ("(S (NP (PP )PP )NP a/A b/B c/C )S", "(S A B C )S", "empty"),
        ("(S a/A b/B ( ) (X( c/C )S", "(S A B C )S", "symbols"),
        ("(S(NP a/A b/B c/C", "A B C", "symbols"),
        ("a/A b/B c/C cat /D d/ /", "A B C", "symbols"),
        # The written words tell which is missing, or too much.
        ("(S b/B (NP c/C )NP )S", "(S XX B (NP C )NP )S", "leaves"),
        ("(S a/A (NP c/C )NP )S", "(S A (NP XX C )NP )S", "leaves"),
        ("(S (NP a/A a/A )NP b/B c/C )S", "(S (NP A )NP B C )S", "leaves"),
        ("(S d/D (NP a/A )NP b/B c/C )S", "(S (NP A )NP B C )S", "leaves"),
        # Another word in the place of one is that one.
        ("(S d/A (NP d/B )NP c/C )S", "(S A (NP B )NP C )S", "words"),
        ("(S a/A d/B (NP e/C )NP )S", "(S A B (NP C )NP )S", "words"),
        ("(S (NP d/B )NP c/C )S", "(S (NP XX B )NP C )S", "leaves words"),
        ("(S d/A d/B d/C d/D )S", "(S B C D )S", "leaves words"),
    ],
)
def test_mends_what_is_wrong_and_says_so(text, mended, faults):
    tree, found = restore(text, ["a", "b", "c"])

    tags = iter(tree.tags)
    shown = [next(tags) if s == "XX" else s for s in tree.symbols]
    assert " ".join(shown) == mended
    assert found == set(faults.split())


@pytest.mark.parametrize(
    ("written", "words", "tags"),
    [
        ("very good very x", "very x very good", "1 2 3 4"),
        ("X of the Y , of Z", "X of Y , of the Z", "1 2 4 5 6 XX 7"),
        ("a a a a", "a a", "3 4"),
    ],
)
def test_written_words_are_found_with_the_least_edits(written, words, tags):
    leaves = [f"{word}/{i}" for i, word in enumerate(written.split(), 1)]

    tree, _ = restore(" ".join(leaves), words.split())

    assert tree.tags == tuple(tags.split())


SYMBOLS = [
    "(S", "(NP", ")S", ")NP", ")X", "a/A", "b/B", "ab/AB", "-LRB-/(", "a/b/A",
    "/A", "cat", "(", ")", "((", "()",
]  # fmt: skip
# A hard space, and signs that are others when they are normalized.
LETTERS = "ab(-LRB)/\u00a0\uff08\u00bd\u2474"


@settings(derandomize=True, database=None, deadline=None)
@given(
    st.one_of(
        st.lists(st.sampled_from(SYMBOLS)).map(" ".join),
        st.text(st.sampled_from("()/SX \n\u00a0")),
        st.text(),
    ),
    st.lists(st.text(st.sampled_from(LETTERS), min_size=1), max_size=9),
)
def test_any_text_becomes_a_tree_of_the_words(text, words):
    tree, _ = restore(text, words)

    assert tree.words == tuple(words)
    assert tree.symbols.count("XX") == len(tree.tags) == len(words)
    assert all(start < end for _, start, end in tree.constituents())
    # What is mended needs no mending.
    assert restore(tree.linearize(), words) == (tree, frozenset())


@settings(derandomize=True, database=None, deadline=None)
@given(st.sets(st.integers(0, 11)))
def test_words_left_out_move_no_others(missing):
    words = [f"w{number}" for number in range(12)]
    leaves = [
        "" if number in missing else f"w{number}/T{number}"
        for number in range(12)
    ]
    text = ["(S (NP", *leaves[:6], ")NP (VP", *leaves[6:], ")VP )S"]

    tree, faults = restore(" ".join(text), words)

    assert ("leaves" in faults) == bool(missing)
    assert list(tree.tags) == [
        "XX" if number in missing else f"T{number}" for number in range(12)
    ]
    found = {label: range(*span) for label, *span in tree.constituents()}
    for label, half in (("NP", range(6)), ("VP", range(6, 12))):
        assert set(half) - missing == set(found.get(label, ())) - missing


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("(S (NP a/DT b/NN )NP -LRB-/-LRB- )S", "DT NN -LRB-"),
        ("(S (NP a/DT )NP )S", "DT XX XX"),
        ("(S (NP a/DT b/NN -LRB-/NN ,/, )NP )S", "DT NN NN"),
        ("(S (NP a/b/DT -LRB-/NN )NP )S", "XX DT NN"),
    ],
)
def test_a_word_has_the_tag_that_was_written_for_it(text, tags):
    tree, _ = restore(text, ["a", "b", "("])

    assert tree.tags == tuple(tags.split())
    assert f"({tags.split()[2]} -LRB-)" in str(tree)


def test_a_written_word_has_no_blanks():
    tree = Tree(
        ("10\u00a0000", "(s)"), ("CD", "NN"), ("(NP", "XX", "XX", ")NP")
    )

    assert tree.linearize() == "(NP 10000/CD -LRB-s-RRB-/NN )NP"
    assert restore(tree.linearize(), tree.words) == (tree, frozenset())


def test_trees_may_be_deep():
    text = " ".join(["(NP"] * 5_000 + ["a/NN"])

    tree, faults = restore(text, ["a"])

    assert faults == {"brackets"}
    assert len(list(tree.constituents())) == 5_000
    assert str(tree).endswith("(NN a" + ")" * 5_002)
