"""Tests of `export.bundle.warmup_requests`."""

import pytest
import sentencepiece
import tensorflow as tf

from export.bundle import file_layout, warmup_requests
from export.bundle.graph_inspection import read_meta_graph, served_signatures
from keras_transformer import SubwordTokenizer


@pytest.fixture(scope="module")
def proto(run_dir):
    return (run_dir / "tokenizer.model").read_bytes()


@pytest.fixture(scope="module")
def requests(export_dir):
    """The requests in the file."""
    return list(warmup_requests.read_warmup(export_dir / "1" / file_layout.WARMUP))


@pytest.mark.parametrize("num_tokens", [2, 8, 39])
def test_sentences_have_the_tokens_that_were_asked_for(proto, num_tokens):
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    words = warmup_requests.choose_words(SubwordTokenizer(proto))

    sentences = warmup_requests.make_sentences(words, num_tokens, 5)

    lengths = [len(library.encode(sentence)) + 1 for sentence in sentences]
    assert lengths == [num_tokens] * 5
    assert len(set(sentences)) == 5


def test_the_default_is_warm_for_each_batch_size(requests, proto):
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    shapes = set()
    for request in requests:
        if request.model_spec.signature_name == "serving_default":
            text = tf.make_ndarray(request.inputs["text"])
            lengths = {len(library.encode(t.decode())) + 1 for t in text}
            shapes.add((len(text), *lengths))

    assert shapes == {(1, 8), (8, 8), (32, 8)}
    assert {request.model_spec.name for request in requests} == {"reverse"}


def test_every_signature_is_warm_that_cannot_wait(requests, export_dir):
    signatures = served_signatures(read_meta_graph(export_dir / "1"))
    asked = {request.model_spec.signature_name for request in requests}

    # The options of `translate_nbest` have no batch axis: with batching the
    # server would refuse the request, and the version with it.
    cold = {"translate_nbest", "align", "explain", "explain_beam", "sample"}
    assert set(signatures) - asked == cold
    assert len(requests) <= 1000
    for request in requests:
        inputs = signatures[request.model_spec.signature_name].inputs
        assert set(request.inputs) == set(inputs)
        arrays = {
            name: tf.make_ndarray(value) for name, value in request.inputs.items()
        }
        assert len({len(array) for array in arrays.values()}) == 1
        for name, array in arrays.items():
            dtype = tf.as_dtype(inputs[name].dtype)
            assert array.dtype == dtype.as_numpy_dtype
            assert array.ndim == len(inputs[name].tensor_shape.dim)
