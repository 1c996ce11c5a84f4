"""The oracle is the `sentencepiece` library, which trained the models."""

import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings, strategies as st

import keras_transformer
from keras_transformer.tokenizer import SubwordTokenizer
from tests.helpers.oracles.whole_characters import PARTS, ids_of, text_of
from tests.helpers.other_systems.converted_runs import train_spm

PADDING = 0
END = 1
UNKNOWN = 2
BEGIN = 3
SPECIAL_IDS = {"pad_id": PADDING, "eos_id": END, "unk_id": UNKNOWN, "bos_id": BEGIN}

SENTENCES = [
    f"{subject} {verb} {complement}."
    for subject in ["The black cat", "A small dog", "Mi gato", "Él"]
    for verb in ["sleeps in", "has seen", "duerme en", "vio"]
    for complement in ["the house", "two parks", "la casa", "un año"]
]

TEXTS = [
    "The black cat sleeps in the house.",
    "",
    " ",
    " \t\n ",
    "  A small dog  has   seen two parks. ",
    "Él vio un año",
    "E\u0301l vio un an\u0303o",  # The same, with combining marks.
    "z\u0300\u0301\u0302\u0303\u0304",
    "Ｔｈｅ　ｃａｔ １２３",
    "ﬁne ½ ㎏ Ⅷ",
    "naïve 東京 Привет שלום नमस्ते",
    "🐈 👩\u200d👩\u200d👧 🇪🇸 👍🏽",
    "tab\tline\nreturn\rnull\0bell\x07delete\x7f",
    "zero\u200bwidth\u00a0blank\ufeff\u2028",
    "<s> </s> <pad> <unk> <0x41> ▁the▁cat",
    "cat" * 1000,
    "\U0010ffff \ufffd",
]

NO_UTF_8 = [b"\xff\xfe cat", b"the \xc3(", b"\xed\xa0\x80", b"dog \xf0\x9f"]


@pytest.fixture(scope="module", params=["bpe", "unigram", "bpe, no byte fallback"])
def model(request):
    kind, _, without = request.param.partition(",")
    size = 100 if without else 350
    options = {"model_type": kind, "byte_fallback": not without}
    return train_spm(SENTENCES, size, **SPECIAL_IDS, **options)


@pytest.fixture(scope="module")
def library(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.fixture(scope="module")
def tokenizer(model):
    return SubwordTokenizer(model)


def test_ids_are_those_of_the_library_and_the_end_symbol(tokenizer, library):
    ids = tokenizer.tokenize(TEXTS)

    assert ids.dtype == tf.int32
    for text, actual in zip(TEXTS, ids.to_list(), strict=True):
        assert actual == [*library.encode(text), END], repr(text)
    # The texts are not trivial: words are split, and merged.
    assert len(library.encode("cat" * 1000)) > 100
    assert 1 < len(library.encode("The black cat")) < 13


def test_bytes_that_are_no_utf_8_are_read_as_the_library_reads_them(tokenizer, library):
    ids = tokenizer.tokenize(NO_UTF_8)

    expected = [[*library.encode(text), END] for text in NO_UTF_8]
    assert ids.to_list() == expected
    for text in tokenizer.detokenize(ids).numpy():
        assert text.decode()  # UTF-8 again.


def test_text_comes_back_as_the_library_gives_it(tokenizer, library):
    ids = tokenizer.tokenize(TEXTS)

    texts = tokenizer.detokenize(ids)
    padded = tokenizer.detokenize(tf.cast(ids, "int64").to_tensor(PADDING))

    np.testing.assert_array_equal(padded, texts)
    assert texts.shape == (len(TEXTS),)
    for text, actual in zip(TEXTS, texts.numpy(), strict=True):
        assert actual.decode() == library.decode(library.encode(text))
    assert texts[0] == TEXTS[0].encode()


def test_special_ids_and_what_follows_the_first_end_are_left_out(tokenizer, library):
    small, dog = library.encode("small"), library.encode("dog")
    cases = [
        ([*small, END, *dog, END], "small"),
        ([*dog, END, END, *small], "dog"),
        ([END, *small], ""),
        ([*small, *dog], "small dog"),  # No end: all of it.
        ([BEGIN, *small, *dog, END], "small dog"),
        ([*small, PADDING, BEGIN, PADDING, *dog, END], "small dog"),
        ([PADDING, PADDING, *small, *dog], "small dog"),
        ([BEGIN, END], ""),
        ([PADDING], ""),
        ([], ""),
    ]
    ids, expected = zip(*cases, strict=True)

    texts = tokenizer.detokenize(tf.ragged.constant(ids, dtype="int32"))

    assert [text.decode() for text in texts.numpy()] == list(expected)


@pytest.fixture(scope="module")
def detokenize_in_graph(tokenizer):
    return tf.function(
        tokenizer.detokenize, input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(PARTS, max_size=5))
def test_bytes_that_are_no_whole_character_are_left_out(
    tokenizer, library, detokenize_in_graph, rows
):
    if library.piece_to_id("<0x41>") == UNKNOWN:
        rows = [[part for part in row if isinstance(part, str)] for row in rows]
    ids = [ids_of(library, row) for row in rows]
    ids = tf.ragged.constant(ids, tf.int32, ragged_rank=1)

    texts = tokenizer.detokenize(ids)
    in_graph = detokenize_in_graph(ids.to_tensor(PADDING))

    expected = [text_of(library, row) for row in rows]
    assert [text.decode() for text in texts.numpy()] == expected
    np.testing.assert_array_equal(in_graph, texts)


def test_ragged_ids_are_refused_with_what_to_call(tokenizer):
    model = keras_transformer.Transformer.from_preset("tiny", vocabulary_size=20)

    with pytest.raises(ValueError, match=r"ragged: call its `to_tensor\(\)`"):
        model.generate(tokenizer.tokenize(["A cat."]))


def test_a_batch_of_none(tokenizer):
    ids = tokenizer.tokenize(tf.constant([], tf.string))

    assert ids.to_list() == []
    assert tokenizer.detokenize(ids).shape == (0,)
    assert tokenizer.detokenize(tf.zeros([0, 3], tf.int32)).shape == (0,)
    texts = tokenizer.detokenize(tf.zeros([3, 0], tf.int32))
    assert texts.numpy().tolist() == [b""] * 3


def test_seeding_deletes_no_tokenizer(tokenizer):
    """It deletes those of tensorflow_text (tensorflow/text#570)."""
    in_graph = tf.function(lambda text: tokenizer.tokenize(text).to_tensor())
    before = in_graph(tf.constant(["two dogs"])).numpy().tolist()

    tf.random.set_seed(1)

    assert tokenizer.tokenize(["two dogs"]).to_list() == before
    assert in_graph(tf.constant(["two dogs"])).numpy().tolist() == before


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("tokenizer.model", "`model_proto` must be bytes.*of type str$"),
        (None, "of type NoneType$"),
        (b"", "SentencePiece.*0 bytes"),
        (b"no model", "SentencePiece.*8 bytes"),
        (bytes(50), "SentencePiece.*50 bytes"),
    ],
)
def test_refuses_what_is_no_model(model, message):
    with pytest.raises(ValueError, match=message):
        SubwordTokenizer(model)


@pytest.mark.parametrize(
    "special_ids",
    [
        # The defaults of the library: unknown 0, BOS 1, EOS 2.
        {"pad_id": -1},
        {"pad_id": 0, "eos_id": 3, "unk_id": 2, "bos_id": 1},
        {"pad_id": -1, "eos_id": 1, "unk_id": 0, "bos_id": 2},
        {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    ],
)
def test_refuses_a_model_of_other_special_ids(special_ids):
    model = train_spm(SENTENCES, 100, model_type="bpe", **special_ids)
    with pytest.raises(ValueError, match=r"ids 0 to 3. Received: \[b"):
        SubwordTokenizer(model)


def test_sources_and_targets_have_a_model_each():
    protos = [
        train_spm(lines, size, **SPECIAL_IDS)
        for lines, size in ((SENTENCES, 70), ([s[::-1] for s in SENTENCES], 60))
    ]
    source, target = (
        sentencepiece.SentencePieceProcessor(model_proto=proto) for proto in protos
    )
    tokenizer = SubwordTokenizer(*protos)

    texts = SENTENCES[::7]
    ids = {text: (source.encode(text), target.encode(text)) for text in texts}
    assert all(a != b for a, b in ids.values())
    found = tokenizer.tokenize(texts).to_list()
    assert found == [[*of_source, END] for of_source, _ in ids.values()]
    found = tokenizer.tokenize_targets(texts)
    assert found.to_list() == [[*of_target, END] for _, of_target in ids.values()]
    assert [text.decode() for text in tokenizer.detokenize(found).numpy()] == [
        target.decode(of_target) for _, of_target in ids.values()
    ]
    for library, size, id_to_piece in (
        (source, tokenizer.source_vocabulary_size, tokenizer.source_id_to_piece),
        (target, tokenizer.vocabulary_size, tokenizer.id_to_piece),
    ):
        assert size == library.get_piece_size()
        pieces = id_to_piece(np.arange(size)).numpy().tolist()
        assert [p.decode() for p in pieces] == [
            library.id_to_piece(i) for i in range(size)
        ]


def test_without_tensorflow_text_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    monkeypatch.delitem(sys.modules, "keras_transformer.tokenizer")

    with pytest.raises(ModuleNotFoundError, match=r"pip .*translation\[tensorflow\]'"):
        keras_transformer.SubwordTokenizer  # noqa: B018
