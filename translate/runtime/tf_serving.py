"""Client of TF Serving over gRPC, with several requests at a time."""

import collections
import concurrent.futures
import dataclasses
import random
import re
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from command_line.errors import UserError, require_extra
from command_line.options import option, positive
from export.bundle.server_config import WARMUP_BATCH_SIZES
from export.model.signature_inputs import LANGUAGE_INPUTS
from translate.runtime.runtime import SIGNATURE, Runtime

PAUSES = (0.5, 1, 2, 4, 8)  # Seconds before each retry, on average.
MODEL_NAME = "translator"
ADDRESS = re.compile(r"([^\s/@:\[\]]+|\[[\da-fA-F:.]+\]):(\d{1,5})", re.ASCII)
PREDICT = "/tensorflow.serving.PredictionService/Predict"
# Requests that show whether a server has a signature.
TEXT = np.array([b"a"], object)
PAIR = {"source": TEXT, "target": TEXT}
PROBES = {
    "translate_nbest": {"text": TEXT, "beam_size": np.int32(2)},
    "align": PAIR,
    "score": PAIR,
}


class ServerUnavailableError(Exception):
    """The server did not answer; a retry may succeed."""


class TFServingRuntime(Runtime):
    """A model of a server; requests are sent again, and keep their order.

    A request is sent again if the server is unreachable or too busy. Any other
    error is final, and so is a timeout: the server may still be computing, and
    a retry would add to its load. gRPC's own retry policy ends with the timeout
    of the first attempt, and the waits of urllib3 cannot be interrupted.

    `send` is a function from the name of a signature and a dict of arrays to a dict
    of arrays, which raises `ServerUnavailableError` or `UserError`. `map` sends
    `in_flight` batches before the first is answered. The `pauses` are seconds before
    each retry, times a random factor from 0.5 to 1.5, so that clients do not retry at
    the same moment.
    """

    # The server refuses what it lacks.
    signatures = frozenset({SIGNATURE, "sample", *PROBES})
    max_rows = WARMUP_BATCH_SIZES[-1]  # As in `batching_parameters.txt`.

    def __init__(self, send: Callable, in_flight: int, pauses: Iterable[float]):
        self._send = send
        self.in_flight = in_flight
        self._pauses = tuple(pauses)
        self._stopped = threading.Event()

    def ask(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature.

        Raises:
            UserError: If the server refuses the request or stays unreachable.
        """
        inputs = self.with_languages(inputs)
        for pause in (*self._pauses, None):
            try:
                return self._send(signature, inputs)
            except ServerUnavailableError as error:
                if pause is None or self._stopped.wait(
                    pause * random.uniform(0.5, 1.5)
                ):
                    raise UserError(
                        "--server must name a server that answers. Received: "
                        f"{shorten_message(error)} "
                        f"(tries: {len(self._pauses) + 1})"
                    ) from None

    def find_language_inputs(self) -> None:
        """Asks the server which languages requests must name.

        Raises:
            UserError: If it does not answer, or has another model.
        """
        try:
            self.translate_batch(["a"])
        except RefusedRequestError as error:
            # The server names the inputs that are missing.
            self.language_inputs = [x for x in LANGUAGE_INPUTS if x in str(error)]
            if not self.language_inputs:
                raise

    def probe(self) -> None:
        self.find_signatures()
        super().probe()

    def find_signatures(self) -> None:
        """Asks the server which of `PROBES` it has.

        Raises:
            UserError: If it does not answer, or has another model.
        """
        self.translate_batch(["a"])
        self.signatures = {SIGNATURE, *filter(self._has, PROBES)}

    def _has(self, signature):
        try:
            self.ask(signature, PROBES[signature])
        except UserError:
            return False
        return True

    def map(self, answer: Callable, batches: Iterable) -> Iterator:
        """Yields `answer(batch)` of each batch, several at a time, in order."""
        pending = collections.deque()
        try:
            for batch in batches:
                pending.append(call_in_thread(answer, batch))
                if len(pending) == self.in_flight:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:
            self._stopped.set()  # Requests in flight are not retried.
            raise


class RefusedRequestError(UserError):
    """A request that the server refuses; it may take others."""


def call_in_thread(function: Callable, argument: object) -> concurrent.futures.Future:
    """Calls a function in a thread that does not delay the program's end."""
    future = concurrent.futures.Future()

    def call():
        try:
            future.set_result(function(argument))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


def make_sender(address: str, model_name: str, timeout: float) -> Callable:
    """Returns the `send` of a `TFServingRuntime`, to the server at `HOST:PORT`.

    Raises:
        UserError: If the package of TF Serving's messages is not installed.
    """
    with require_extra("--server", "train"):
        import grpc
        from tensorflow_serving.apis import predict_pb2

        from export.bundle.predict_messages import make_request, read_tensors
    options = {
        "grpc.max_receive_message_length": -1,
        # By default the delay grows, also for a server that restarts quickly.
        "grpc.max_reconnect_backoff_ms": 1000,
    }
    predict = grpc.insecure_channel(address, [*options.items()]).unary_unary(
        PREDICT,
        predict_pb2.PredictRequest.SerializeToString,
        predict_pb2.PredictResponse.FromString,
    )

    def send(signature, inputs):
        # The server only batches requests for all outputs.
        request = make_request(model_name, signature, inputs)
        try:
            response = predict(request, timeout=timeout)
        except grpc.RpcError as error:
            code = error.code()
            message = f"{address}, {code.name}: {error.details()}"
            if code == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise UserError(
                    "--timeout must be long enough for a batch; the server may "
                    "still be at it, so it is not sent again. "
                    f"Received: {timeout:g} s, {shorten_message(message)}"
                ) from None
            if code == grpc.StatusCode.UNAVAILABLE:
                raise ServerUnavailableError(message) from None
            raise RefusedRequestError(
                "--server must name a server of this model. "
                f"Received: {shorten_message(message)}"
            ) from None
        return read_tensors(response.outputs)

    return send


def shorten_message(message: object) -> str:
    return textwrap.shorten(str(message), 300)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """Options of a client, apart from the server's address."""

    model_name: str = option(MODEL_NAME, "the server's name of the model")
    timeout: float = option(
        120, "seconds to wait for the outputs of a batch", positive(float)
    )
    in_flight: int = option(
        4, "batches sent before the first is answered", positive(int)
    )


def connect(server: str, options: ClientOptions) -> TFServingRuntime:
    """Returns the model of a server at `HOST:PORT`.

    Raises:
        UserError: If the address is invalid.
    """
    found = ADDRESS.fullmatch(server)
    if not found or not 0 < int(found[2]) < 2**16:
        # The part before an @ may hold a password.
        received = server.rpartition("@")[2]
        raise UserError(f"--server must be HOST:PORT. Received: {received}")
    send = make_sender(server, options.model_name, options.timeout)
    return TFServingRuntime(send, options.in_flight, PAUSES)
