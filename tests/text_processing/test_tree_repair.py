import pytest
from hypothesis import given, settings, strategies as st

from text_processing.tree_repair import repair_tree


@pytest.mark.parametrize(
    ("text", "repaired", "repairs"),
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
        # The words of the output show which is missing or surplus.
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
def test_repairs_a_tree_and_names_the_repairs(text, repaired, repairs):
    tree, found = repair_tree(text, ["a", "b", "c"])

    tags = iter(tree.tags)
    shown = [next(tags) if s == "XX" else s for s in tree.symbols]
    assert " ".join(shown) == repaired
    assert found == set(repairs.split())


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
    tree, _ = repair_tree(text, words)

    assert tree.words == tuple(words)
    assert tree.symbols.count("XX") == len(tree.tags) == len(words)
    assert all(start < end for _, start, end in tree.constituents())
    # A repaired tree needs no repair.
    assert repair_tree(tree.linearize(), words) == (tree, frozenset())


@settings(derandomize=True, database=None, deadline=None)
@given(st.sets(st.integers(0, 11)))
def test_words_left_out_move_no_others(missing):
    words = [f"w{number}" for number in range(12)]
    leaves = [
        "" if number in missing else f"w{number}/T{number}" for number in range(12)
    ]
    text = ["(S (NP", *leaves[:6], ")NP (VP", *leaves[6:], ")VP )S"]

    tree, repairs = repair_tree(" ".join(text), words)

    assert ("leaves" in repairs) == bool(missing)
    assert list(tree.tags) == [
        "XX" if number in missing else f"T{number}" for number in range(12)
    ]
    found = {label: range(*span) for label, *span in tree.constituents()}
    for label, half in (("NP", range(6)), ("VP", range(6, 12))):
        assert set(half) - missing == set(found.get(label, ())) - missing


def test_trees_may_be_deep():
    text = " ".join(["(NP"] * 5_000 + ["a/NN"])

    tree, repairs = repair_tree(text, ["a"])

    assert repairs == {"brackets"}
    assert len(list(tree.constituents())) == 5_000
    assert str(tree).endswith("(NN a" + ")" * 5_002)
