"""Tests of the requests that stand beside a model: samples and warm-up."""

import json
import math

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from export.bundle import file_layout, warmup_requests
from export.bundle.graph_inspection import read_meta_graph, served_signatures
from export.bundle.predict_messages import make_request, serialize
from export.bundle.sample_requests import describe_differences
from keras_transformer import SubwordTokenizer


@pytest.fixture(scope="module")
def folder(export_dir):
    return export_dir / "1" / file_layout.SAMPLES


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def test_rest_is_asked_by_columns(folder):
    default, options = (
        read(folder, "serving_default"),
        read(folder, "translate_options"),
    )
    found = read(folder, "serving_default.answer")["outputs"]
    outputs = read(folder, "translate_options.answer")["outputs"]

    assert default["signature_name"] == "serving_default"
    assert options["signature_name"] == "translate_options"
    assert default["inputs"]["text"] == options["inputs"]["text"]
    assert options["inputs"]["length_penalty"] == [0.6, 0.6]
    assert options["inputs"]["max_extra_length"] == [8, 8]
    # With the options of the export, it does what the default does.
    assert outputs["translation"] == found["translation"]
    assert outputs["error"] == ["", ""]
    assert all(found["translation"])


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"score": [-1.5, 1000.2]}, []),
        ({"text": ["a", "c"]}, ["text, row 1: wanted 'b', received 'c'"]),
        ({"text": [1, "b"]}, ["text, row 0: wanted 'a', received 1"]),
        ({"text": ["a"]}, ["text: wanted 2 rows, received 1"]),
        (
            {"score": [-1.51, math.nan]},
            [
                "score, row 0: wanted -1.5, received -1.51",
                "score, row 1: wanted 1000.0, received nan",
            ],
        ),
        ({"more": []}, ["wanted outputs ['score', 'text'], received "]),
    ],
)
def test_differences_are_told(changes, difference):
    wanted = {"text": ["a", "b"], "score": [-1.5, 1000.0]}

    def arrays(columns):
        return {
            name: [x.encode() if isinstance(x, str) else x for x in column]
            for name, column in columns.items()
        }

    found = describe_differences(arrays(wanted), arrays({**wanted, **changes}))

    for line, begins in zip(found, difference, strict=True):
        assert line.startswith(begins)


@pytest.mark.parametrize("number", [-math.inf, math.inf, math.nan])
def test_what_is_no_number_is_never_right(number):
    outputs = {"score": np.array([number])}

    assert describe_differences(outputs, outputs) == [
        f"score, row 0: wanted {number}, received {number}"
    ]


def test_equal_tensors_give_equal_bytes():
    # Of few names a map may happen to keep one order.
    names = [f"input {number}" for number in range(50)]
    messages = {
        serialize(make_request("mine", "", dict.fromkeys(order, np.ones(1))))
        for order in (names, names[::-1])
    }

    assert len(messages) == 1


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
