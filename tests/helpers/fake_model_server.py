"""Stand-in for TF Serving's gRPC by the rules of its source; serves one version."""

import concurrent.futures
import contextlib
import functools

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from tests.helpers.fake_servable import ServerError

NUM_THREADS = 16


def predict(servable, request, context):
    spec = request.model_spec
    inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
    try:
        servable.check_model(spec.name)
        outputs = servable.predict(spec.signature_name, inputs)
    except ServerError as error:
        context.abort(error.code, str(error))
    response = predict_pb2.PredictResponse()
    response.model_spec.name = spec.name
    response.model_spec.version.value = servable.version
    response.model_spec.signature_name = spec.signature_name or "serving_default"
    for name, value in outputs.items():
        write_fields(value, response.outputs[name])
    return response


def write_fields(value, proto):
    """Writes an array as the server does (`AsProtoField`), never as raw bytes."""
    dtype = tf.dtypes.as_dtype("string" if value.dtype.kind == "O" else value.dtype)
    proto.dtype = dtype.as_datatype_enum
    for size in value.shape:
        proto.tensor_shape.dim.add().size = size
    field = {
        tf.string: proto.string_val,
        tf.float32: proto.float_val,
        tf.int32: proto.int_val,
        tf.bool: proto.bool_val,
    }[dtype]
    field.extend(value.ravel().tolist())


@contextlib.contextmanager
def serve_grpc(servable, port=0):
    """Serves on localhost while the context lasts; yields `"host:port"`."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(NUM_THREADS),
        options=[("grpc.max_receive_message_length", -1)],  # As the server's.
    )
    handler = grpc.unary_unary_rpc_method_handler(
        functools.partial(predict, servable),
        predict_pb2.PredictRequest.FromString,
        predict_pb2.PredictResponse.SerializeToString,
    )
    handlers = grpc.method_handlers_generic_handler(
        "tensorflow.serving.PredictionService", {"Predict": handler}
    )
    server.add_generic_rpc_handlers([handlers])
    port = server.add_insecure_port(f"localhost:{port}")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(grace=None).wait()
