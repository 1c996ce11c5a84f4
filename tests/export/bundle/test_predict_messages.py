"""Tests of `export.bundle.predict_messages`."""

import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from export.bundle.predict_messages import make_request
from export.bundle.predict_messages import read_tensors
from export.bundle.predict_messages import serialize

TENSORS = {
    "text": np.array([b"a cat", b"", "ñ".encode()], object),
    "length_penalty": np.array([0.5, -1.5], np.float32),
    "beam_size": np.array(3, np.int32),
    "valid": np.array([[True, False]]),
}


def test_a_request_is_what_it_was_made_of():
    message = serialize(make_request("mine", "translate", TENSORS))

    request = PredictRequest.FromString(message)
    received = read_tensors(request.inputs)

    assert request.model_spec.name == "mine"
    assert request.model_spec.signature_name == "translate"
    assert set(received) == set(TENSORS)
    for name, value in TENSORS.items():
        assert received[name].dtype == value.dtype
        np.testing.assert_array_equal(received[name], value)


def test_equal_tensors_give_equal_bytes():
    # Of few names a map may happen to keep one order.
    names = [f"input {number}" for number in range(50)]
    messages = {
        serialize(make_request("mine", "", dict.fromkeys(order, np.ones(1))))
        for order in (names, names[::-1])
    }

    assert len(messages) == 1
