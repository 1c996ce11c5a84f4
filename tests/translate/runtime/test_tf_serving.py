import contextlib
import functools
import re
import socket
import sys
import threading
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from command_line.errors import UserError
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_models import translate_lines
from tests.helpers.fake_servable import ServerError
from tests.helpers.python_subprocess import run_python
from tests.helpers.service_client import in_thread
from tests.helpers.signature_requests import ask
from translate.document_translation import make_sentence_translator
from translate.runtime import tf_serving as client

Status = grpc.StatusCode


class Capitals:
    """Stands where a `Servable` would: translates into capitals.

    The first requests fail with a status of `answers`, or wait for that function.
    """

    version = 1

    def __init__(self, *answers):
        signature = meta_graph_pb2.SignatureDef()
        signature.inputs["text"].dtype = tf.string.as_datatype_enum
        self.signatures = {"serving_default": signature}
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.running = self.most_running = self.count = 0

    def check_model(self, name):
        if name != "translator":
            raise ServerError(Status.NOT_FOUND, f"Servable not found: {name}")

    def predict(self, signature_name, inputs):
        with self._lock:
            self.count += 1
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            answer = self._answers.pop(0) if self._answers else int
        try:
            if isinstance(answer, Status):
                raise ServerError(answer, "two\nlines")
            answer()
        finally:
            with self._lock:
                self.running -= 1
        text = np.array([line.upper() for line in inputs["text"]], object)
        score, truncated = np.zeros(len(text), np.float32), np.zeros(len(text), bool)
        return {"translation": text, "score": score, "truncated": truncated}


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:

        def start(*answers):
            servable = Capitals(*answers)
            address = stack.enter_context(serve_grpc(servable))
            return servable, address

        yield start


def connect(address, timeout=20.0, in_flight=4, pauses=(0.01, 0.01)):
    send = client.make_sender(address, "translator", timeout)
    return client.TFServingRuntime(send, in_flight, pauses)


def test_translates_as_the_export_does(servable, translate_file):
    lines = [*(s.encode() for s in SENTENCES), b"", "\ufffd 猫".encode()]
    expected = servable.predict("serving_default", ask(lines))["translation"]

    with serve_grpc(servable) as address:
        options = [f"--server={address}", "--batch-tokens=20"]
        found = translate_file(b"\n".join(lines), *options)

    expected = [b" ".join(text.splitlines()) for text in expected]
    assert found == b"\n".join([*expected, b""])


def test_sends_no_larger_batches_than_the_server_takes(servable, export_dir):
    parameters = (export_dir / "batching_parameters.txt").read_text()
    (limit,) = re.findall(r"max_batch_size { value: (\d+) }", parameters)
    lines = [b"Two cats."] * 100
    alone = servable.predict("serving_default", ask(lines[:1]))
    (expected,) = alone["translation"]
    batching = servable.with_max_batch_size(int(limit))

    with serve_grpc(batching) as address:
        found = translate_lines(connect(address), lines, 1024)
        assert list(found) == [expected] * 100

        translator = make_sentence_translator(connect(address))
        found = translator.translate([line.decode() for line in lines])
        assert [each.text for each in found] == [expected.decode()] * 100


def test_keeps_the_order_with_many_batches_in_flight(serve):
    pauses = np.random.default_rng(0).uniform(0.001, 0.05, 30)
    three = threading.Barrier(3, timeout=60)
    waits = [functools.partial(time.sleep, pause) for pause in pauses]
    capitals, address = serve(*[three.wait] * 3, *waits)
    lines = [b"line %d" % i for i in range(40)]

    found = translate_lines(connect(address, in_flight=3), lines, 1)

    assert list(found) == [line.upper() for line in lines]
    assert capitals.most_running == 3


def test_clients_do_not_all_come_back_at_once():
    def send(signature, inputs):
        raise client.ServerUnavailableError("away")

    waited = []
    for _ in range(200):
        away = client.TFServingRuntime(send, in_flight=1, pauses=[8])
        away._stopped.wait = waited.append
        with pytest.raises(UserError, match="away"):
            away.translate_batch([b"a"])

    assert len(set(waited)) == 200
    assert 4 <= min(waited) < 6
    assert 10 < max(waited) <= 12


@pytest.mark.parametrize(
    ("statuses", "tries", "message"),
    [
        ([Status.UNAVAILABLE] * 2, 3, None),
        ([Status.UNAVAILABLE] * 3, 3, r"answers.*two.*lines.*\(tries: 3\)$"),
        ([Status.INVALID_ARGUMENT], 1, "must name a server of this model"),
        ([Status.RESOURCE_EXHAUSTED], 1, "must name a server of this model"),
        ([Status.DEADLINE_EXCEEDED], 1, "--timeout must be .* not sent again"),
        (["silent"], 1, "--timeout must be .* not sent again"),
    ],
)
def test_tries_again_where_the_server_may_come_back(serve, statuses, tries, message):
    asked = threading.Event()
    is_silent = statuses == ["silent"]
    capitals, address = serve(*([asked.wait] if is_silent else statuses))
    ask = connect(address, timeout=0.4 if is_silent else 60.0).translate_batch

    if message is None:
        assert ask([b"a"])["translation"].tolist() == [b"A"]
    else:
        with pytest.raises(UserError, match=message):
            ask([b"a"])
    asked.set()
    assert capitals.count == tries


def test_waits_for_a_server_that_starts_late():
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    late, away = connect(f"localhost:{port}", pauses=[0.1] * 999), threading.Event()
    wait = late._stopped.wait
    late._stopped.wait = lambda pause: away.set() or wait(pause)
    thread, found = in_thread(late.translate_batch, [b"a"])

    assert away.wait(60)
    with serve_grpc(Capitals(), port):
        thread.join()

    assert found[0]["translation"].tolist() == [b"A"]


def test_an_error_ends_the_waiting_of_all_batches():
    def send(signature, inputs):
        if inputs["text"] == [b"wrong"]:
            raise UserError("wrong")
        raise client.ServerUnavailableError("away")

    waiting = client.TFServingRuntime(send, in_flight=2, pauses=[9_999])

    with pytest.raises(UserError, match="wrong"):
        list(waiting.map(waiting.translate_batch, [[b"wrong"], [b"a"], [b"b"]]))
    with pytest.raises(UserError, match="away"):
        waiting.translate_batch([b"a"])


@pytest.mark.slow
def test_a_request_in_flight_does_not_delay_the_end():
    """After an error, or Ctrl-C, the program ends at once."""
    code = """
import time
from translate.document_translation import make_sentence_translator
from translate.runtime import tf_serving as client
def send(signature, inputs):
    if inputs["text"] == [b"wrong"]:
        raise SystemExit
    time.sleep(9_999)
runtime = client.TFServingRuntime(send, 2, [])
list(runtime.map(runtime.translate_batch, [[b"slow"], [b"wrong"]][::-1]))
"""
    assert run_python("-c", code) == ""


def test_grpc_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)

    with pytest.raises(UserError, match="--server needs the extra `train`: pip"):
        client.make_sender("localhost:1", "translator", 1)
