"""The messages of TF Serving that an export holds, without its package.

Names and numbers of the fields are those of tensorflow_serving/apis; what is
not used here is left out. On the wire a map is a repeated message of key and
value, and so it is here.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

PACKAGE = "keras_transformer.serving"
TENSOR = ".tensorflow.TensorProto"
# By message and field: number, type, and whether it is repeated.
MESSAGES = {
    "ModelSpec": {
        "name": (1, "string", False),
        "signature_name": (3, "string", False),
    },
    "NamedTensor": {"key": (1, "string", False), "value": (2, TENSOR, False)},
    "PredictRequest": {
        "model_spec": (1, f".{PACKAGE}.ModelSpec", False),
        "inputs": (2, f".{PACKAGE}.NamedTensor", True),
    },
    "PredictResponse": {
        "outputs": (1, f".{PACKAGE}.NamedTensor", True),
        "model_spec": (2, f".{PACKAGE}.ModelSpec", False),
    },
    "PredictLog": {"request": (1, f".{PACKAGE}.PredictRequest", False)},
    "PredictionLog": {"predict_log": (6, f".{PACKAGE}.PredictLog", False)},
}


def make_classes() -> dict[str, type]:
    """Makes the classes of `MESSAGES`."""
    field_types = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="keras_transformer/predict_messages.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=["tensorflow/core/framework/tensor.proto"],
    )
    for message_name, fields in MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, (number, kind, repeated) in fields.items():
            field = message.field.add(name=name, number=number)
            field.label = (
                field_types.LABEL_REPEATED
                if repeated
                else field_types.LABEL_OPTIONAL
            )
            if kind == "string":
                field.type = field_types.TYPE_STRING
            else:
                field.type = field_types.TYPE_MESSAGE
                field.type_name = kind
    pool = descriptor_pool.Default()  # It knows the messages of TensorFlow.
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
        )
        for name in MESSAGES
    }


_CLASSES = make_classes()
PredictRequest = _CLASSES["PredictRequest"]
PredictResponse = _CLASSES["PredictResponse"]
PredictionLog = _CLASSES["PredictionLog"]


def make_request(
    model_name: str, signature: str, inputs: Mapping[str, np.ndarray]
) -> PredictRequest:
    """Makes a request for all outputs of a signature.

    Args:
        model_name: The name that the server gives the model.
        signature: Name of the signature.
        inputs: Arrays by input; strings as objects.
    """
    request = PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    add_tensors(request.inputs, inputs)
    return request


def add_tensors(entries, tensors: Mapping[str, np.ndarray]) -> None:
    """Adds arrays to a map of tensors, by name."""
    for name, value in sorted(tensors.items()):
        entries.add(key=name).value.CopyFrom(tf.make_tensor_proto(value))


def read_tensors(entries) -> dict[str, np.ndarray]:
    """Returns the arrays of a map of tensors, by name."""
    return {entry.key: tf.make_ndarray(entry.value) for entry in entries}
