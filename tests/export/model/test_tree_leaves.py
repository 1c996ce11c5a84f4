"""Tests of `tree_leaves`, and of exports that write trees."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from export.model.search import SearchSettings
from export.model.translator import Translator
from export.model.tree_leaves import TreeLeaves
from keras_transformer import SubwordTokenizer, Transformer
from keras_transformer.presets import PRESETS
from keras_transformer.search.tree_constraint import TAG
from text_processing.tree_repair import repair_tree
from train.data.corpus import TreePairs
from train.data.vocabulary import learn_vocabulary

TREES = """\
(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))
(TOP (NP (NP (NNS dogs)) (PRN (-LRB- -LRB-) (NP (CD two)) (-RRB- -RRB-))))
(TOP (S (NP (NNP Ann)) (VP (VBD met) (NP (DT a) (NN cat) (CC and) (NN dog)))))
"""
SENTENCES = [
    "The cat sleeps .",
    "dogs ( two ) and/or a cat",
    "x/NN (S )S /NN é ＡＢ 10/./,",
    "-LRB-",
    "",
]
SETTINGS = {"beam_size": 2, "max_extra_length": 60}


@pytest.fixture(scope="module")
def proto(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "trees.ptb"
    path.write_text(TREES * 4)
    return learn_vocabulary(TreePairs(path), 360)


@pytest.fixture(scope="module")
def model(proto):
    """A model that no training has taught what a tree is."""
    keras.utils.set_random_seed(0)
    preset = PRESETS["tiny"].replace(num_layers=1, hidden_dim=16, num_heads=2)
    size = SubwordTokenizer(proto).vocabulary_size + 8
    return Transformer.from_preset(preset, size, sequence_length=64)


def test_leaves_are_the_tokens_of_the_words_with_a_tag_after_each(proto):
    tokenizer = SubwordTokenizer(proto)
    pieces = tokenizer.id_to_piece(tf.range(tokenizer.vocabulary_size)).numpy()
    pieces = [piece.decode() for piece in pieces]
    ids = tokenizer.tokenize(SENTENCES).to_tensor()

    constraint = TreeLeaves(tokenizer, proto, 400)(ids)

    for sentence, row in zip(SENTENCES, constraint.leaves.numpy(), strict=True):
        row = row[row != 0].tolist()
        words = "".join("\n" if i == TAG else pieces[i] for i in row)
        plain = sentence.replace("(", "-LRB-").replace(")", "-RRB-")
        plain = plain.replace("ＡＢ", "AB")
        assert words.count("\n") == len(plain.split())
        assert bool(row) == bool(plain)
    symbols = {pieces[i]: pieces[j] for i, j in constraint.closing_of.items()}
    labels = ["NP", "PRN", "S", "VP"]
    assert symbols == {f"▁({label}": f"▁){label}" for label in labels}
    assert {"/DT", "/.", "/-LRB-"} <= {pieces[i] for i in constraint.tag_ids}


@pytest.mark.parametrize("name", ["serving_default", "translate_nbest", "sample"])
def test_every_output_is_a_tree_of_the_words(model, proto, name):
    settings = SearchSettings(**SETTINGS, constrain_trees=True)
    translator = Translator(model, (proto, None), settings, [name])
    options = {}
    if name == "sample":
        count = len(SENTENCES)
        options = {
            "temperature": np.full(count, 3, "float32"),
            "top_k": np.zeros(count, "int32"),
            "top_p": np.ones(count, "float32"),
            "seed": np.arange(count, dtype="int32"),
        }

    outputs = translator.signatures[name](tf.constant(SENTENCES), **options)

    rows = outputs["translation"].numpy().reshape(len(SENTENCES), -1)
    for sentence, row in zip(SENTENCES, rows, strict=True):
        assert bool(row[0]) == bool(sentence)
        for text in filter(None, row.tolist()):
            _, faults = repair_tree(text.decode(), sentence.split())
            assert not faults, (sentence, text)


def test_without_brackets_there_are_no_trees(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()

    with pytest.raises(ValueError, match=r"brackets and tags.*0 symbols"):
        TreeLeaves(SubwordTokenizer(proto), proto, 2000)
