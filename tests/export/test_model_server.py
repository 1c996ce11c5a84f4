"""The SavedModel behind the interfaces of TF Serving: gRPC, REST, batching."""

import base64
import concurrent.futures
import http.client
import json

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from export.bundle.saved_model import load_translate
from tests.helpers import model_server
from tests.helpers.batching_session import ServerError
from tests.helpers.requests import FILTERS
from tests.helpers.requests import REQUESTS
from tests.helpers.requests import differences
from tests.helpers.requests import rows
from tests.helpers.sentences import NASTY
from tests.helpers.sentences import SENTENCES

TEXTS = [*(s.encode() for s in SENTENCES), *NASTY]
ALL = pytest.mark.parametrize("signature", REQUESTS)


@pytest.fixture(scope="module")
def stub(servable):
    with (
        model_server.serve_grpc(servable) as address,
        grpc.insecure_channel(address) as channel,
    ):
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def post(servable):
    """Posts JSON to the model; returns the status and the JSON answered."""
    with model_server.serve_rest(servable) as address:

        def call(request, path="/v1/models/translator:predict"):
            if not isinstance(request, bytes):
                request = json.dumps(request)
            connection = http.client.HTTPConnection(address, timeout=60)
            connection.request("POST", path, request)
            answer = connection.getresponse()
            content = json.loads(answer.read())
            connection.close()
            return answer.status, content

        yield call


def make_request(signature="", output_filter=(), **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "translator"
    request.model_spec.signature_name = signature
    request.output_filter.extend(output_filter)
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def predict(stub, *args, **inputs):
    response = stub.Predict(make_request(*args, **inputs), timeout=60)
    return {
        name: tf.make_ndarray(proto) for name, proto in response.outputs.items()
    }


def assert_same(outputs, expected):
    assert outputs.keys() == expected.keys()
    for name, value in expected.items():
        assert outputs[name].shape == value.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(outputs[name], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(outputs[name], value)


def test_grpc_answers_as_the_loaded_model(stub, export_dir):
    expected = load_translate(export_dir)(TEXTS)

    response = stub.Predict(make_request(text=TEXTS), timeout=60)

    # As a client in another language reads it.
    translation = response.outputs["translation"]
    assert list(translation.string_val) == list(expected["translation"].numpy())
    assert [d.size for d in translation.tensor_shape.dim] == [len(TEXTS)]
    score = response.outputs["score"]
    np.testing.assert_allclose(score.float_val, expected["score"], atol=1e-5)
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "serving_default"


@ALL
def test_grpc_carries_every_signature(signature, stub, servable):
    inputs = REQUESTS[signature](TEXTS)

    outputs = predict(stub, signature, **inputs)

    assert_same(outputs, servable.predict(signature, inputs))


def test_missing_options_come_from_the_signature(stub):
    """The fixture was exported with beam 3, α 0.6 and 8 more tokens."""
    text = [s.encode() for s in SENTENCES]
    options = {
        "beam_size": np.int32(3),
        "length_penalty": np.float32(0.6),
        "max_extra_length": np.int32(8),
    }
    expected = predict(stub, "translate_nbest", text=text, **options)

    assert_same(predict(stub, "translate_nbest", text=text), expected)
    one = predict(stub, "translate_nbest", text=text, beam_size=np.int32(1))
    assert one["translations"].shape == (len(text), 1)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (make_request(), "INVALID_ARGUMENT", "Missing but required"),
        (make_request(texts=[b"a"]), "INVALID_ARGUMENT", "not found in"),
        (
            make_request("translate_nbest", text=[b"a"], beams=1),
            "INVALID_ARGUMENT",
            "invalid name",
        ),
        (make_request(text=[b"a"], b=1), "INVALID_ARGUMENT", "Sent extra"),
        (make_request(text=[1]), "INVALID_ARGUMENT", "string but int32"),
        (make_request(text=b"a"), "INVALID_ARGUMENT", "shape"),
        (make_request("nbest", text=[b"a"]), "FAILED_PRECONDITION", "nbest"),
        (make_request("translate_nbest"), "INVALID_ARGUMENT", "text"),
        (make_request("", ["x"], text=[b"a"]), "INVALID_ARGUMENT", "alias"),
    ],
)
def test_grpc_refuses_by_the_rules(request_, code, message, stub):
    with pytest.raises(grpc.RpcError, match=message) as error:
        stub.Predict(request_, timeout=60)

    assert error.value.code().name == code


def test_grpc_refuses_other_models_and_versions(stub):
    request = make_request(text=[b"a"])
    request.model_spec.version.value = 2
    with pytest.raises(grpc.RpcError, match=r"Specific\(translator, 2\)"):
        stub.Predict(request)
    request.model_spec.name = "other"
    request.model_spec.ClearField("version")
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        stub.Predict(request)
    request.model_spec.name = "translator"
    request.model_spec.version.value = 1
    assert stub.Predict(request).outputs["translation"].string_val


def test_an_output_filter_leaves_the_rest_out(stub):
    (signature, names), *_ = FILTERS.items()

    outputs = predict(stub, signature, names, text=[b"a"])

    assert set(outputs) == set(names)


def as_json(value):
    """Returns an array as nested lists, strings in base64."""
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, np.ndarray) and value.ndim:
        return [as_json(item) for item in value]
    return value.item()


def from_json(value):
    array = np.array(value)
    if array.dtype.kind == "U":
        encoded = [text.encode() for text in np.array(value, object).ravel()]
        return np.array([*encoded, b""], object)[:-1].reshape(array.shape)
    return array


@ALL
def test_rest_columns_answer_as_grpc(signature, post, servable):
    inputs = REQUESTS[signature](TEXTS)

    status, answer = post(
        {
            "signature_name": signature,
            "inputs": {name: as_json(value) for name, value in inputs.items()},
        }
    )

    assert status == 200, answer
    outputs = {n: from_json(value) for n, value in answer["outputs"].items()}
    assert_same(outputs, servable.predict(signature, inputs))


@pytest.mark.parametrize("signature", sorted({*REQUESTS} - {"translate_nbest"}))
def test_rest_rows_answer_as_grpc(signature, post, servable):
    inputs = REQUESTS[signature](TEXTS)

    status, answer = post(
        {
            "signature_name": signature,
            "instances": rows({n: as_json(v) for n, v in inputs.items()}),
        }
    )

    assert status == 200, answer
    expected = servable.predict(signature, inputs)
    names = answer["predictions"][0]
    outputs = {
        name: from_json([row[name] for row in answer["predictions"]])
        for name in names
    }
    assert_same(outputs, expected)


def test_rest_takes_plain_strings(post, servable):
    text = ["Two cats sleep.", "ñandú 🐈", ""]
    encoded = np.array([t.encode() for t in text], object)
    expected = servable.predict("", {"text": encoded})["translation"].tolist()

    for request in (
        {"instances": text},
        {"instances": [{"text": t} for t in text]},
        {"inputs": text},
        {"inputs": {"text": text}, "signature_name": "serving_default"},
    ):
        status, answer = post(request)
        if "instances" in request:
            found = [row["translation"] for row in answer["predictions"]]
        else:
            found = answer["outputs"]["translation"]
        assert status == 200
        assert [t.encode() for t in found] == expected


NBEST = {"text": ["a"], "beam_size": 2, "length_penalty": 1}
OPTIONS = {"text": "a", "length_penalty": 1, "prefix": ""}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (b"{", "JSON Parse error"),
        (b"[]", "is not object"),
        ({}, "one of 'inputs' or 'instances'"),
        ({"instances": ["a"], "inputs": ["a"]}, "one of"),
        ({"instances": []}, "with values"),
        ({"instances": ["a", {"text": "a"}]}, "at item 1"),
        ({"instances": [{"texts": "a"}]}, "keys must be equal to: text"),
        ({"instances": [1]}, "not of expected type: string"),
        ({"instances": [["a", "b"], ["a"]]}, "unexpected size"),
        ({"instances": ["a"], "signature_name": "x"}, "not found"),
        ({"inputs": {}}, "Missing named input: text"),
        ({"inputs": ["a"], "signature_name": "score"}, "expecting an object"),
        # Defaults are for gRPC alone.
        (
            {"inputs": NBEST, "signature_name": "translate_nbest"},
            "Missing named input: max_extra_length",
        ),
        (
            {"instances": [OPTIONS], "signature_name": "translate_options"},
            "keys must be equal to: length_penalty,max_extra_length,prefix",
        ),
        (
            {
                "inputs": {**NBEST, "max_extra_length": 1.5},
                "signature_name": "translate_nbest",
            },
            "not of expected type: int32",
        ),
        (
            {
                "inputs": {**NBEST, "max_extra_length": -1},
                "signature_name": "translate_nbest",
            },
            "max_extra_length must be between 0 and 1000",
        ),
    ],
)
def test_rest_refuses_by_the_rules(request_, message, post):
    status, answer = post(request_)

    assert status == 400
    assert message in answer["error"]


def test_rest_refuses_other_paths(post):
    request = {"instances": ["a"]}

    assert post(request, "/v1/models/other:predict")[0] == 404
    assert post(request, "/v1/models/translator/versions/2:predict")[0] == 404
    assert post(request, "/v1/models/translator/versions/1:predict")[0] == 200
    assert post(request, "/v1/models/translator:classify")[0] == 400


def in_batches(servable, signature, all_inputs, **options):
    """Runs requests at once through the server's batching.

    Returns:
        Their answers, outputs or errors, and how many ran together.
    """
    batching = servable.with_batching(timeout=0.3, **options)

    def answer(inputs):
        try:
            return batching.predict(signature, inputs)
        except ServerError as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(all_inputs)) as pool:
        return list(pool.map(answer, all_inputs)), batching.batching.batch_sizes


@pytest.mark.parametrize("signature", sorted({*REQUESTS} - {"translate_nbest"}))
def test_requests_in_one_batch_are_answered_as_alone(signature, servable):
    parts = [TEXTS[:1], TEXTS[1:3], TEXTS[3:9], TEXTS[9:]]
    all_inputs = [REQUESTS[signature](part) for part in parts]

    answers, sizes = in_batches(
        servable, signature, all_inputs, pad_variable_length_inputs=True
    )

    assert sizes == [len(parts)]
    for inputs, outputs in zip(all_inputs, answers, strict=True):
        expected = servable.predict(signature, inputs)
        pairs = zip(rows(outputs), rows(expected), strict=True)
        for found, alone in pairs:
            assert not differences(found, alone)


def test_batching_refuses_scalar_inputs_unless_outputs_are_filtered(servable):
    inputs = REQUESTS["translate_nbest"](TEXTS[:2])
    batching = servable.with_batching()

    with pytest.raises(ServerError, match="at least one dimension"):
        batching.predict("translate_nbest", inputs)

    outputs = batching.predict(
        "translate_nbest", inputs, FILTERS["translate_nbest"]
    )
    assert outputs["translations"].shape == (2, 3)
    assert not batching.batching.batch_sizes


def test_ids_of_other_widths_share_no_batch_without_padding(servable):
    all_inputs = [REQUESTS["translate_ids"]([t]) for t in (b"one", b"three")]

    answers, _ = in_batches(servable, "translate_ids", all_inputs)

    for answer in answers:
        assert answer.code.name == "FAILED_PRECONDITION"
