import gzip
import random

import pytest

from command_line.errors import UserError
from tests.helpers.oracles import random_trees
from text_processing.tree_repair import repair_tree
from text_processing.treebanks import read_trees
from text_processing.trees import Tree

CAT = "(S (NP (DT A) (NN cat)) (VP (VBZ sleeps)))"
CAT_TREE = Tree(
    ("A", "cat", "sleeps"),
    ("DT", "NN", "VBZ"),
    ("(S", "(NP", "XX", "XX", ")NP", "(VP", "XX", ")VP", ")S"),
)


@pytest.fixture
def trees_of(tmp_path):
    def read(content):
        path = tmp_path / "trees"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
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


@pytest.mark.parametrize(
    ("content", "words", "tags"),
    [
        ("(ROOT (NP (NN One)) (. .) (S (NN two)))", ["One", ".", "two"], "NN . NN"),
        (
            "(S (-LRB- -LRB-) (NN cat-LRB-s-RRB-) (-RRB- -RRB-))",
            ["(", "cat(s)", ")"],
            "-LRB- NN -RRB-",
        ),
        ("(S (NN/VB run))", ["run"], "NN|VB"),  # A tag has no slash.
        # As they were before the treebank wrote them.
        (
            r"(NP (CD 1\/2) (SYM \*) (NN -LCB-a-RSB-) (NN \a))",
            ["1/2", "*", "{a]", r"\a"],
            "CD SYM NN NN",
        ),
        # A hard space is a part of a word, but none of a written one.
        ("(S (CD 10\u00a0000) (NN x\u2028y))", ["10\u00a0000", "x\u2028y"], "CD NN"),
    ],
)
def test_words_and_tags_are_as_they_were_meant(trees_of, content, words, tags):
    (tree,) = trees_of(content)

    assert list(tree.words) == words
    assert list(tree.tags) == tags.split()
    written = tree.linearize()
    assert all(len(leaf.split()) == 1 for leaf in written.split(" "))
    assert repair_tree(written, tree.words) == (tree, frozenset())
    (again,) = trees_of(str(tree))
    assert again.symbols == tree.symbols


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{CAT}\n\n(S (NN a)\n", "open at the end. Received: .*line 3"),
        (f"{CAT}\n{CAT})\n", r"must begin with \(. Received: .*line 2, \)"),
        (f"{CAT}\nhello\n", r"must begin with \(. .*line 2, hello"),
        ("(S (NN a) b)", "label and brackets, or a tag and a word.*… b"),
        ("\n(NP the cat)", r"tag and a word.*line 2, … \( NP the cat \)"),
        ("(())", "tag and a word"),
        ("(S ((NN a)))", r"tag and a word.*… \( \( NN a"),
        (f"(ROOT {CAT}\n(ROOT {CAT}))", "a whole tree. .*line 1, ROOT within"),
        ("(S (TOP (NN a)))", "TOP must stand around a whole tree"),
        ("\n\n", "must hold one. Received: .*trees"),
        (b"(S (NN \xff))", "must be UTF-8.*line 1, byte 0xff"),
    ],
)
def test_refuses_what_is_no_tree(trees_of, content, message):
    with pytest.raises(UserError, match=message):
        trees_of(content)


@pytest.mark.parametrize("seed", range(20))
def test_trees_come_back_but_for_what_is_stripped(trees_of, seed):
    chance = random.Random(seed)
    drawn = [random_trees.draw_tree(chance, chance.randint(1, 30)) for _ in range(10)]
    decorated = [f"(ROOT {random_trees.write_decorated(chance, t)})" for t in drawn]

    trees = trees_of("\n".join(decorated))

    for tree, expected in zip(trees, drawn, strict=True):
        assert tree.linearize() == random_trees.linearise(expected)
        assert str(tree) == f"(TOP {random_trees.write(expected)})"
        assert repair_tree(tree.linearize(), tree.words) == (tree, frozenset())
        assert sorted(tree.constituents()) == sorted(spans(expected))


def spans(tree, start=0):
    """Returns label, first word and end of each constituent, by recursion."""
    found = [(tree[0], start, start + len(random_trees.words(tree)))]
    for child in tree[1:]:
        if isinstance(child, list):
            found += spans(child, start)
        start += len(random_trees.words(child))
    return found
