"""Stand-in for TF Serving: gRPC and REST, by the rules of its source.

    python -m tests.helpers.fake_model_server --export-dir exports/mine \
        --port 8500 --rest-api-port 8501

No performance, one model, one version: for tests, and for trying a client
where there is no `tensorflow_model_server`.
"""

import argparse
import base64
import concurrent.futures
import contextlib
import dataclasses
import functools
import http.server
import json
import pathlib
import re
import ssl
import subprocess
import sys
import threading

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from tests.helpers.fake_servable import Servable, ServerError, invalid

Status = grpc.StatusCode
# `ToHTTPStatusCode` of model_servers/http_server.cc.
HTTP_CODES = {
    Status.INVALID_ARGUMENT: 400,
    Status.FAILED_PRECONDITION: 400,
    Status.OUT_OF_RANGE: 400,
    Status.UNAUTHENTICATED: 401,
    Status.NOT_FOUND: 404,
    Status.RESOURCE_EXHAUSTED: 429,
    Status.UNIMPLEMENTED: 501,
    Status.UNAVAILABLE: 503,
    Status.DEADLINE_EXCEEDED: 504,
}
# `prediction_api_regex_` of model_servers/http_rest_api_handler.cc.
PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict", re.IGNORECASE)
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
    version = spec.version.value if spec.HasField("version") else None
    inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
    try:
        gate.check(headers.get("authorization"))
        servable.check_model(spec.name, version)
        asked = list(request.output_filter)
        outputs = servable.predict(spec.signature_name, inputs, asked)
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


class HTTPServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
        # Else a client has hung up, which is no error of the server.


@contextlib.contextmanager
def serve_rest(servable, port=0, gate=OPEN):
    """Serves on localhost while the context lasts; yields `"host:port"`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers["Authorization"]
            code, body = answer_rest(servable, self.path, body, gate, token)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("localhost", port), Handler)
    if gate.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(gate.certificate, gate.certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer_rest(servable, path, body, gate, authorization):
    """Returns status code and body of the answer to a POST request."""
    try:
        gate.check(authorization)
        match = PREDICT.fullmatch(path.removeprefix(gate.prefix))
        if not (match and path.startswith(gate.prefix)):
            raise invalid(f"Malformed request: POST {path}")
        name, version = match.groups()
        servable.check_model(name, int(version) if version else None)
        signature, inputs, is_row = read_request(body, servable.signatures)
        outputs = servable.predict(signature, inputs)
        return 200, write_response(outputs, is_row)
    except ServerError as error:
        code = HTTP_CODES.get(error.code, 500)
        return code, json.dumps({"error": str(error)}).encode()


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.fake_model_server",
        description="Serves an export by the rules of TF Serving.",
    )
    parser.add_argument("--export-dir", required=True)
    parser.add_argument("--port", type=int, default=8500, help="of gRPC")
    parser.add_argument("--rest-api-port", type=int, default=8501)
    parser.add_argument("--model-name", default="translator")
    args = parser.parse_args(argv)
    servable = Servable(args.export_dir, args.model_name)
    with (
        serve_grpc(servable, args.port) as grpc_address,
        serve_rest(servable, args.rest_api_port) as rest_address,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"gRPC on {grpc_address}, REST on {rest_address}", flush=True)
        threading.Event().wait()


def read_request(body, signatures):
    """Returns the signature's name, the inputs, and whether they come by rows."""
    try:
        request = json.loads(body)
        name = request.get("signature_name", "serving_default")
        infos = signatures[name].inputs
        is_row = "instances" in request
        if is_row:
            columns = read_rows(request["instances"], infos)
        elif is_object(request["inputs"]):
            columns = request["inputs"]
        else:  # The value of the only input.
            columns = dict.fromkeys(infos, request["inputs"])
        return name, {n: to_array(columns[n], infos[n]) for n in infos}, is_row
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The server says what it misses in words of its own.
        raise invalid(f"JSON Parse error: {error!r}") from error


def read_rows(instances, infos):
    """Reads a list of values, or of objects that hold every input."""
    if not is_object(instances[0]):
        (name,) = infos
        return {name: instances}
    return {name: [row[name] for row in instances] for name in infos}


def is_object(value):
    return isinstance(value, dict) and list(value) != ["b64"]


def to_array(value, info):
    dtype = tf.dtypes.as_dtype(info.dtype).as_numpy_dtype
    return np.array(strings_to_bytes(value), dtype)


def strings_to_bytes(value):
    """Turns strings into bytes, in lists within lists, too."""
    if isinstance(value, list):
        return [strings_to_bytes(item) for item in value]
    if isinstance(value, dict):
        return base64.b64decode(value["b64"], validate=True)
    return value.encode() if isinstance(value, str) else value


def write_response(outputs, is_row):
    """Returns the JSON of tensors, as bytes; a single output has no name."""
    lists = {name: to_lists(value) for name, value in outputs.items()}
    if not is_row:
        columns = lists if len(lists) > 1 else next(iter(lists.values()))
        return json.dumps({"outputs": columns}).encode()
    rows = [
        dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)
    ]
    if len(lists) == 1:
        rows = [value for row in rows for value in row.values()]
    return json.dumps({"predictions": rows}).encode()


def to_lists(value):
    if isinstance(value, np.ndarray):
        return [to_lists(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    # A float32 is written with the digits that distinguish it.
    return float(str(value)) if isinstance(value, np.floating) else value.item()


if __name__ == "__main__":
    main()
