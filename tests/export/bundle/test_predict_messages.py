"""Tests of `export.bundle.predict_messages`, against the server's own."""

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2

from export.bundle import predict_messages
from export.bundle.predict_messages import PredictResponse
from export.bundle.predict_messages import add_tensors
from export.bundle.predict_messages import make_request
from export.bundle.predict_messages import read_tensors

TENSORS = {
    "text": np.array([b"a cat", b"", "ñ".encode()], object),
    "length_penalty": np.array([0.5, -1.5], np.float32),
    "beam_size": np.array(3, np.int32),
    "valid": np.array([[True, False]]),
}


def test_fields_are_those_of_the_server():
    modules = {
        "ModelSpec": "model_pb2",
        "PredictRequest": "predict_pb2",
        "PredictResponse": "predict_pb2",
        "PredictLog": "prediction_log_pb2",
        "PredictionLog": "prediction_log_pb2",
    }
    for message, module in modules.items():
        apis = pytest.importorskip(f"tensorflow_serving.apis.{module}")
        real = descriptor_pb2.DescriptorProto()
        getattr(apis, message).DESCRIPTOR.CopyToProto(real)
        fields = {field.name: field for field in real.field}
        ours = predict_messages.MESSAGES[message]
        for name, (number, _, repeated) in ours.items():
            assert fields[name].number == number
            is_repeated = fields[name].label == fields[name].LABEL_REPEATED
            assert is_repeated == repeated


def test_a_request_means_the_same_to_the_server():
    predict_pb2 = pytest.importorskip("tensorflow_serving.apis.predict_pb2")

    request = predict_pb2.PredictRequest.FromString(
        make_request("mine", "translate", TENSORS).SerializeToString()
    )

    assert request.model_spec.name == "mine"
    assert request.model_spec.signature_name == "translate"
    assert set(request.inputs) == set(TENSORS)
    for name, value in TENSORS.items():
        received = tf.make_ndarray(request.inputs[name])
        assert received.dtype == value.dtype
        np.testing.assert_array_equal(received, value)


def test_reads_an_answer_of_the_server():
    predict_pb2 = pytest.importorskip("tensorflow_serving.apis.predict_pb2")
    answer = predict_pb2.PredictResponse()
    for name, value in TENSORS.items():
        answer.outputs[name].CopyFrom(tf.make_tensor_proto(value))

    ours = PredictResponse.FromString(answer.SerializeToString())

    received = read_tensors(ours.outputs)
    assert set(received) == set(TENSORS)
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(received[name], value)


def test_equal_tensors_give_equal_bytes():
    messages = []
    for names in (sorted(TENSORS), sorted(TENSORS, reverse=True)):
        message = PredictResponse()
        add_tensors(message.outputs, {name: TENSORS[name] for name in names})
        messages.append(message.SerializeToString())

    assert messages[0] == messages[1]
