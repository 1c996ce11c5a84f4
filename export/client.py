"""A client of a running TF Serving: batches of sentences in, outputs out."""

import base64
import collections
import concurrent.futures
import dataclasses
import http.client
import json
import math
import textwrap
import threading
import urllib.parse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from http.client import IncompleteRead

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.options import flag
from command_line.options import option

PAUSES = (0.5, 1, 2, 4, 8)  # Seconds before a batch is sent again.
# Those of the model's outputs that the command lines read.
OUTPUTS = {"translation": tf.string, "truncated": tf.bool}


class ServerUnavailableError(Exception):
    """No answer, which another try may bring."""


class Client:
    """Translates on a server; waits, tries again, and keeps order.

    A batch is sent again where the server is not there, is too busy or takes
    too long; any other refusal is final. gRPC's own retry policy ends with the
    timeout of the first try, and urllib3's waits cannot be broken off.

    Args:
        send: Function from a list of sentences, bytes, to a dict of tensors.
            Raises `ServerUnavailableError` or `UserError`.
        in_flight: Positive int, how many batches `map` sends before the first
            is answered.
        pauses: Seconds to wait before each further try of a batch.
    """

    def __init__(self, send: Callable, in_flight: int, pauses: Iterable[float]):
        self._send = send
        self._in_flight = in_flight
        self._pauses = tuple(pauses)
        self._stopped = threading.Event()

    def __call__(self, text: list[bytes]) -> dict[str, tf.Tensor]:
        """Translates a batch.

        Raises:
            UserError: If the server refuses, or stays away, or has another
                model.
        """
        for pause in (*self._pauses, None):
            try:
                return check_outputs(self._send(text), len(text))
            except ServerUnavailableError as error:
                if pause is None or self._stopped.wait(pause):
                    raise UserError(
                        "--server must name a server that answers. Received: "
                        f"{one_line(error)} (tries: {len(self._pauses) + 1})"
                    ) from None

    def map(self, batches: Iterable) -> Iterator[dict[str, tf.Tensor]]:
        """Translates batches, several at once; yields in their order."""
        pool = concurrent.futures.ThreadPoolExecutor(self._in_flight)
        pending = collections.deque()
        try:
            for batch in batches:
                pending.append(pool.submit(self, batch))
                if len(pending) == self._in_flight:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:
            self._stopped.set()  # No further try of those in flight.
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def check_outputs(
    outputs: dict[str, tf.Tensor], rows: int
) -> dict[str, tf.Tensor]:
    """Returns outputs that this model could have given.

    Raises:
        UserError: If it could not.
    """
    for name, dtype in OUTPUTS.items():
        found = outputs.get(name)
        if found is None or found.dtype != dtype or found.shape != [rows]:
            raise refusal(f"an answer without `{name}` for each text")
    return outputs


def over_grpc(server: str, model_name: str, timeout: float) -> Callable:
    """Returns the `send` of a `Client` that calls `PredictionService`.

    Raises:
        UserError: If the package with its protocol is not there.
    """
    try:
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        from export.bundle.predict_messages import make_request
        from export.bundle.predict_messages import read_tensors
    except ImportError as error:
        raise UserError(
            "--protocol grpc needs `pip install tensorflow-serving-api`. "
            f"Received: {error}"
        ) from None
    options = {
        "grpc.max_receive_message_length": -1,
        # Else it stays away longer and longer from a server that restarts.
        "grpc.max_reconnect_backoff_ms": 1000,
    }
    channel = grpc.insecure_channel(server, options=list(options.items()))
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    passing = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

    def send(text):
        # All outputs: the server batches whole signatures only.
        request = make_request(model_name, "", {"text": np.array(text, object)})
        try:
            response = stub.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            code = error.code()
            message = f"{server}, {code.name}: {error.details()}"
            if code in passing:
                raise ServerUnavailableError(message) from None
            raise refusal(message) from None
        outputs = read_tensors(response.outputs)
        return {name: tf.constant(value) for name, value in outputs.items()}

    return send


def over_rest(server: str, model_name: str, timeout: float) -> Callable:
    """Returns the `send` of a `Client` that posts JSON."""
    path = f"/v1/models/{urllib.parse.quote(model_name)}:predict"

    def send(text):
        # In base64, since a line need not be UTF-8 and JSON must be.
        lines = [base64.b64encode(tf.compat.as_bytes(line)) for line in text]
        lines = [{"b64": line.decode()} for line in lines]
        body = json.dumps({"inputs": {"text": lines}})
        connection = http.client.HTTPConnection(server, timeout=timeout)
        try:
            connection.request("POST", path, body)
            response = connection.getresponse()
            content = response.read().decode("utf-8", errors="replace")
        except (ConnectionError, TimeoutError, IncompleteRead) as error:
            raise ServerUnavailableError(f"{server}, {error!r}") from None
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise refusal(f"{server}, {error!r}") from None
        finally:
            connection.close()
        if response.status != 200:
            message = f"{server}, {response.status}: {content}"
            if response.status in (503, 504):
                raise ServerUnavailableError(message)
            raise refusal(message)
        try:
            outputs = json.loads(content)["outputs"]
            return {name: tf.constant(value) for name, value in outputs.items()}
        except (ValueError, LookupError, TypeError, AttributeError):
            raise refusal(f"{server}, {content}") from None

    return send


PROTOCOLS = {"grpc": over_grpc, "rest": over_rest}


def refusal(message: str) -> UserError:
    return UserError(
        "--server must name a server of this model. "
        f"Received: {one_line(message)}"
    )


def one_line(message: object) -> str:
    return textwrap.shorten(str(message), 300)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """What a client needs to know beside the server's address.

    Raises:
        UserError: If one of them cannot be.
    """

    protocol: str = option(
        "grpc",
        "TF Serving's ports are 8500 for gRPC and 8501 for REST",
        choices=PROTOCOLS,
    )
    model_name: str = option("translator", "the server's name of the model")
    timeout: float = option(120, "seconds for the answer to a batch", float)
    in_flight: int = option(4, "batches sent before the first is answered", int)

    def __post_init__(self):
        for name, wanted, good in (
            ("timeout", "above 0 and finite", 0 < self.timeout < math.inf),
            ("in_flight", "1 or more", self.in_flight >= 1),
        ):
            if not good:
                raise UserError(
                    f"{flag(name)} must be {wanted}. "
                    f"Received: {getattr(self, name)}"
                )


def connect(server: str, options: ClientOptions) -> Client:
    """Returns the client of a server.

    Args:
        server: Its address, `HOST:PORT`.
        options: How to speak with it.

    Raises:
        UserError: If the address is none.
    """
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"--server must be HOST:PORT. Received: {server}")
    over = PROTOCOLS[options.protocol]
    send = over(server, options.model_name, options.timeout)
    return Client(send, options.in_flight, PAUSES)
