"""Stand-in for TF Serving's gRPC by the rules of its source; serves one version."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import pathlib
import subprocess

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from tests.helpers.fake_servable import ServerError

Status = grpc.StatusCode
NUM_THREADS = 16


@dataclasses.dataclass(frozen=True)
class ProxyCheck:
    """The conditions of a proxy in front of the server."""

    prefix: str = ""  # Of the paths.
    token: str | None = None
    certificate: pathlib.Path | None = None  # For TLS, of `make_certificate`.

    def check(self, header):
        """Refuses another token, with a message that contains it."""
        if self.token and header != f"Bearer {self.token}":
            raise ServerError(Status.UNAUTHENTICATED, f"got {header}")


OPEN = ProxyCheck()


def make_certificate(folder):
    """Makes a certificate of localhost, signed by itself, and its key."""
    path = folder / "localhost.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=DNS:localhost"
    files = ["-out", path, "-keyout", path.with_suffix(".key")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return path


def predict(servable, gate, request, context):
    spec = request.model_spec
    headers = dict(context.invocation_metadata())
    inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
    try:
        gate.check(headers.get("authorization"))
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
def serve_grpc(servable, port=0, gate=OPEN):
    """Serves on localhost while the context lasts; yields `"host:port"`."""
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(NUM_THREADS),
        options=[("grpc.max_receive_message_length", -1)],  # As the server's.
    )
    handler = grpc.unary_unary_rpc_method_handler(
        functools.partial(predict, servable, gate),
        predict_pb2.PredictRequest.FromString,
        predict_pb2.PredictResponse.SerializeToString,
    )
    service = f"{gate.prefix}/tensorflow.serving.PredictionService"[1:]
    handlers = grpc.method_handlers_generic_handler(service, {"Predict": handler})
    server.add_generic_rpc_handlers([handlers])
    address = f"localhost:{port}"
    if gate.certificate:
        key = gate.certificate.with_suffix(".key")
        pair = (key.read_bytes(), gate.certificate.read_bytes())
        credentials = grpc.ssl_server_credentials([pair])
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(grace=None).wait()
