"""Characters that a SentencePiece model lacks, but the shared table has."""

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from convert.vocabularies import make_vocabulary, replace_ids
from keras_transformer import SubwordTokenizer
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import pieces_of, train_spm

PROTO = train_spm(SENTENCES, 90)  # Without digits.
NAMES = ["</s>", "<unk>", *pieces_of(PROTO), *"0123456789,€"]
TABLE = {piece: id_ for id_, piece in enumerate(dict.fromkeys(NAMES))}


@pytest.fixture(scope="module")
def encode():
    """Returns a function from a text to pieces, by our tokenizer."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(PROTO)
    vocabulary = make_vocabulary(TABLE, {1: 0, 2: 1}, [])
    tokenizer = SubwordTokenizer(replace_ids(proto, vocabulary.pieces))

    def run(text):
        ids = tokenizer.tokenize([text])[0].numpy()[:-1]
        return [vocabulary.pieces[id_] for id_ in ids]

    return run


def look_up(text):
    """Returns the pieces as Hugging Face finds them, in the table."""
    model = sentencepiece.SentencePieceProcessor(model_proto=PROTO)
    pieces = model.encode(text, out_type=str)
    return [piece if piece in TABLE else "<unk>" for piece in pieces]


@pytest.mark.parametrize("text", ["a 5 € cat", "Two€cats", "7", "猫 a 8"])
def test_a_character_between_known_ones_is_looked_up(text, encode):
    assert encode(text) == look_up(text)
    assert set(encode(text)) & set("5€78")


def test_of_several_in_a_row_each_is_looked_up(encode):
    """Where Hugging Face has one unknown piece, as the guide says."""
    assert look_up("34,56 €") == ["▁", "<unk>", "▁", "€"]
    assert encode("34,56 €") == ["▁", *"34,56", "▁", "€"]
    assert look_up("猫7") == ["▁", "<unk>"]
    assert encode("猫7") == ["▁", "<unk>", "7"]
