import math
import re
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest
import sentencepiece

from command_line.errors import UserError
from keras_transformer import SubwordTokenizer
from tests.helpers.other_systems.converted_runs import train_spm
from text_processing.placeholders import PLACEHOLDERS
from train.data.corpus import Mixture, Pairs, demo_pairs
from train.data.given_tokenizer import read_tokenizer
from train.data.vocabulary import (
    check_symbols,
    count_pieces,
    learn_vocabulary,
    read_given_tokenizer,
    sample_pairs,
)

FEW = Pairs(
    ["A red house.", "Two red cats sleep.", "The cat sees the house."] * 5,
    ["Una casa roja.", "Dos gatos rojos duermen.", "El gato ve la casa."] * 5,
)
PAIRS = demo_pairs("validation")
LINES = [*PAIRS.sources, *PAIRS.targets]
SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
# Ids that the library gives by default, those of Marian, and ours.
THEIRS = [
    {},
    {"eos_id": 0, "unk_id": 1, "bos_id": -1},
    {"bos_piece": "[BOS]", "pad_id": 5, "pad_piece": "[PAD]", "eos_id": -1},
]
OURS = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": 3}


def write_model(folder, kind="bpe", **options):
    size = 400 if kind in ("bpe", "unigram") else 60
    path = folder / "their.model"
    path.write_bytes(train_spm(LINES, size, model_type=kind, **options))
    return path


def processor(proto):
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("theirs", THEIRS)
def test_a_model_from_elsewhere_splits_text_as_before(tmp_path, kind, theirs):
    path = write_model(tmp_path, kind, user_defined_symbols=["<2es>"], **theirs)
    before = processor(path.read_bytes())

    proto = read_tokenizer(path)

    after = processor(proto)
    assert [after.id_to_piece(i) for i in range(4)] == SPECIAL
    assert after.unk_id() == 2
    others = [
        before.id_to_piece(i)
        for i in range(before.get_piece_size())
        if not before.is_control(i) and not before.is_unknown(i)
    ]
    found = [after.id_to_piece(i) for i in range(4, after.get_piece_size())]
    assert found == others
    lines = [*LINES[:50], "<2es> Ein Haus 🐈"]
    assert after.encode(lines, out_type=str) == before.encode(lines, out_type=str)
    assert after.decode(after.encode(lines)) == before.decode(before.encode(lines))
    assert SubwordTokenizer(proto).vocabulary_size == 4 + len(others)


def test_a_model_with_our_ids_stays_as_it_is(tmp_path):
    path = write_model(tmp_path, **OURS)

    assert read_tokenizer(path) == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a model\n", "SentencePiece model of type bpe or unigram"),
        (b"", "unigram. Received: no pieces"),
        (None, "no such file"),
    ],
)
def test_refuses_what_is_no_model(tmp_path, content, message):
    path = tmp_path / "their.model"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UserError, match=message):
        read_tokenizer(path)


def test_refuses_words_and_another_meaning_of_our_pieces(tmp_path):
    with pytest.raises(UserError, match="Received: one of type char"):
        read_tokenizer(write_model(tmp_path, "char"))
    symbols = {"user_defined_symbols": ["<pad>"]}
    with pytest.raises(UserError, match="another meaning of <pad>"):
        read_tokenizer(write_model(tmp_path, **symbols))


def test_refuses_another_size(tmp_path):
    path = write_model(tmp_path)

    # The model has 400 pieces, and had no padding.
    with pytest.raises(UserError, match="--tokenizer, 401 sub.*--vocabulary-size 400$"):
        read_given_tokenizer(path, 400)
    for size in (None, 401):
        assert read_given_tokenizer(path, size)


def test_refuses_placeholders_that_a_model_lacks(tmp_path):
    lacks = read_tokenizer(write_model(tmp_path))
    has = read_tokenizer(write_model(tmp_path, user_defined_symbols=list(PLACEHOLDERS)))

    check_symbols(PLACEHOLDERS, [has, None], "--tokenizer", "f")
    with pytest.raises(UserError, match="of --tokenizer. Received: f without ⦅0⦆"):
        check_symbols(PLACEHOLDERS, [has, lacks], "--tokenizer", "f")
    with pytest.raises(UserError, match="Received: f without ▁<2de>$"):
        check_symbols([" <2de>"], [has], "--tokenizer", "f")


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(FEW, 320)


def test_the_same_text_gives_the_same_vocabulary(model_proto):
    assert learn_vocabulary(FEW, 320) == model_proto


def test_a_large_corpus_is_sampled_evenly():
    corpus = Pairs([str(i) for i in range(10)], ["x"] * 10)

    assert sample_pairs(corpus, 10) == list(corpus)
    assert [source for source, _ in sample_pairs(corpus, 4)] == ["0", "2", "5", "7"]


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(1, 30), st.fractions(Fraction(1, 9), 9)), min_size=1
    ),
    st.integers(1, 400),
)
def test_the_text_of_a_vocabulary_follows_the_weights(sizes, limit):
    parts = [(Pairs([f"{i}"] * n, ["x"] * n), w) for i, (n, w) in enumerate(sizes)]

    found = [source for source, _ in sample_pairs(Mixture(parts), limit)]

    wanted = [n * w for n, w in sizes]
    scale = min(1, limit / Fraction(sum(wanted)))
    for i, number in enumerate(wanted):
        assert found.count(f"{i}") == math.ceil(number * scale)


@pytest.mark.parametrize(
    ("corpus", "size", "message"),
    [
        (FEW, 5000, r"which is \d+ subwords.*size 5000"),
        (FEW, 20, r"at least \d+ subwords.*size 20"),
        (Pairs([], []), 300, "must have pairs"),
        (Pairs(["x" * 2**16], ["y" * 2**16]), 300, "at most 65,535 bytes"),
    ],
)
def test_refuses_sizes_that_the_text_does_not_support(corpus, size, message):
    with pytest.raises(UserError, match=message):
        learn_vocabulary(corpus, size)


def test_names_the_least_size_that_the_text_supports():
    with pytest.raises(UserError) as refusal:
        learn_vocabulary(FEW, 20)
    (least,) = re.findall(r"at least (\d+) subwords", str(refusal.value))

    assert count_pieces(learn_vocabulary(FEW, int(least))) == int(least)
    with pytest.raises(UserError, match=f"at least {least} "):
        learn_vocabulary(FEW, int(least) - 1)


def test_learns_the_characters_of_long_lines():
    long = "ñandú " * 2_000
    assert len(long.encode()) > 4_192  # SentencePiece's own limit.

    proto = learn_vocabulary(Pairs([long, "a b c"], [long, "a b c"]), 275)

    pieces = sentencepiece.SentencePieceProcessor(model_proto=proto)
    assert "ñ" in pieces.encode("ñ", out_type=str)[-1]
