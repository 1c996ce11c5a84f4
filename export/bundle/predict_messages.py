"""Converts arrays to TF Serving's predict requests, and responses to arrays."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest


def make_request(
    model_name: str, signature: str, inputs: Mapping[str, np.ndarray]
) -> PredictRequest:
    """Makes a request for all outputs of a signature; strings are objects."""
    request = PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def read_tensors(protos) -> dict[str, np.ndarray]:
    """Returns the arrays of a map of tensors."""
    return {name: tf.make_ndarray(proto) for name, proto in protos.items()}


def serialize(message) -> bytes:
    """Returns the bytes of a message, in a deterministic order."""
    return message.SerializeToString(deterministic=True)
