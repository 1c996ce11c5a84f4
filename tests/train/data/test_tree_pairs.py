"""Tests of `train.data.tree_pairs`."""

import pathlib
import re

import pytest
import sentencepiece

from command_line.errors import UserError
from keras_transformer import SubwordTokenizer
from text_processing.tree_repair import repair_tree
from text_processing.trees import Tree
from train.data.tree_pairs import TreePairs
from train.data.vocabulary import learn_vocabulary

TEXT = """\
(ROOT (S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))
(ROOT (S (NP (NNS Dogs)) (VP (VBP eat) (NP-2 (NN food)))))
(ROOT (FRAG (NP (-LRB- -LRB-S) (NNP NPs) (-RRB- -RRB-)) (NN XX)))
(ROOT (NP (-NONE- *)))
"""
BRACKETS = [" (FRAG", " (NP", " (S", " (VP", " )FRAG", " )NP", " )S", " )VP"]
TAGS = ["-LRB-", "-RRB-", ".", "DT", "NN", "NNP", "NNS", "VBP", "VBZ"]
SYMBOLS = BRACKETS + [f"/{tag}" for tag in TAGS]
TREES = [
    "(S (NP The/DT cat/NN )NP (VP sleeps/VBZ )VP ./. )S",
    "(S (NP Dogs/NNS )NP (VP eat/VBP (NP food/NN )NP )VP )S",
    "(FRAG (NP -LRB-S/-LRB- NPs/NNP -RRB-/-RRB- )NP XX/NN )FRAG",
    "",
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trees"
    path.write_text(TEXT)
    return path


@pytest.fixture
def model_proto(path):
    return learn_vocabulary(TreePairs(path), 310)


def test_pairs_are_words_and_trees(path):
    pairs = TreePairs(path)

    assert [target for _, target in pairs] == TREES
    assert [source for source, _ in pairs] == [
        "The cat sleeps .", "Dogs eat food", "(S NPs ) XX", "",
    ]  # fmt: skip
    assert len(pairs) == 4
    assert pairs.symbols() == SYMBOLS


def test_the_digest_sees_what_is_trained_on(path):
    digests = []
    for old, new in (("-SBJ", ""), ("cat", "dog"), ("VP", "X"), ("\n", " ")):
        path.write_text(TEXT.replace(old, new))
        digests.append(TreePairs(path).digest())
    path.write_text(TEXT)

    assert digests[0] == digests[3] == TreePairs(path).digest()
    assert len(set(digests)) == 3


def test_a_symbol_is_one_piece(path, model_proto):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    tokenizer = SubwordTokenizer(model_proto)

    for source, target in TreePairs(path):
        pieces = processor.encode(target, out_type=str)
        found = [p.replace("▁", " ") for p in pieces]
        assert [p for p in found if p in SYMBOLS] == re.findall(
            r" [()][^ /]+|/[^ /]+", f" {target}"
        )
        for text in (source, target):
            ids = tokenizer.tokenize([text])
            assert ids.to_list() == [processor.encode(text, add_eos=True)]
            assert tokenizer.detokenize(ids).numpy() == [text.encode()]


# Whatever looks like a symbol, or is a label that no tree of training has.
@pytest.mark.parametrize(
    "text",
    [
        "(S", ")NP", "(Some cats )S.", "see(S )", "-LRB- XXL aXX -RRB-",
        "(SBAR XX )SBAR", "( S )", "NN", "(S(NP", "NNX VB.Z . a.b",
        "/NN cat/NN/X",
    ],
)  # fmt: skip
def test_text_that_looks_like_brackets_comes_back(model_proto, text):
    tokenizer = SubwordTokenizer(model_proto)

    back = tokenizer.detokenize(tokenizer.tokenize([text])).numpy()[0]

    assert back.decode() == text


def test_words_that_the_vocabulary_normalizes_come_back(model_proto):
    words = ("\u00bd", "\uff08", "\u2474", "10\u00a0000", "\ufb01x", "e\u0301")
    symbols = ("(NP", *["XX"] * len(words), ")NP")
    tree = Tree(words, ("NN",) * len(words), symbols)
    tokenizer = SubwordTokenizer(model_proto)

    ids = tokenizer.tokenize([tree.linearize()])
    written = tokenizer.detokenize(ids).numpy()[0].decode()

    assert repair_tree(written, words) == (tree, frozenset())


def test_refuses_a_treebank_that_is_none(tmp_path):
    with pytest.raises(UserError, match="no such file: .*none"):
        len(TreePairs(pathlib.Path(tmp_path / "none")))
