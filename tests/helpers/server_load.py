"""Load generator for the model server of the tests: see `tests.load`.

Clients send requests of one to eight texts to all signatures over gRPC, to a
server, a process of its own, that runs them in common batches. Every row must
be answered as its text was when it was asked alone, before. Some clients send
the largest requests, and those that must be refused, instead.
"""

import contextlib
import dataclasses
import itertools
import multiprocessing
import pathlib
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from export.bundle.file_layout import SAVED_MODEL
from export.bundle.graph_inspection import read_meta_graph, served_signatures
from export.bundle.versions import find_version
from tests.helpers.example_sentences import NASTY, SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_servable import Servable
from tests.helpers.signature_requests import (
    FILTERS,
    REQUESTS,
    differences,
    invalid_outputs,
    nbest_inputs,
    options_inputs,
    strings,
    to_rows,
)

BATCHING = {"timeout": 0.005, "pad_variable_length_inputs": True}
LONG = 4_000_000  # Bytes.
MAX_GROWTH = 0.02  # Of memory, over the second half.


@dataclasses.dataclass
class Report:
    """Results of a load test.

    Attributes:
        requests, texts: Ints, how many were answered.
        errors, wrong: Lists of strings: requests that failed, and rows whose
            answer is another than alone.
        seconds: List of floats, of each request.
        memory: List of pairs: seconds since the start, resident bytes.
        before, peak: Ints, resident bytes of the server before the load, and
            at most.
    """

    requests: int = 0
    texts: int = 0
    errors: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    seconds: list = dataclasses.field(default_factory=list)
    memory: list = dataclasses.field(default_factory=list)
    before: int = 0
    peak: int = 0

    def add(self, seconds, texts, wrong):
        """Adds a request that was answered."""
        self.requests += 1
        self.texts += texts
        self.seconds.append(seconds)
        self.wrong += wrong

    def growth(self):
        """Returns by what share the memory grew over the second half.

        The means of its first and of its last fifth are compared: single
        numbers go up and down with what is in flight.
        """
        half = [bytes_ for _, bytes_ in self.memory[len(self.memory) // 2 :]]
        fifth = max(len(half) // 5, 1)
        return np.mean(half[-fifth:]) / np.mean(half[:fifth]) - 1


def make_texts(count, seed=0):
    """Returns distinct texts of random lengths, one in twenty nasty."""
    random = np.random.default_rng(seed)
    words = [word.encode() for s in SENTENCES for word in s.split()]
    texts = {}
    while len(texts) < count:
        if random.uniform() < 0.05:
            text = NASTY[random.integers(len(NASTY))]
            text += b"!" * (len(texts) // len(NASTY) % 7)
        else:
            length = random.integers(1, 25)
            text = b" ".join(random.choice(words, length).tolist())
        texts[text] = None
    return list(texts)


def largest_requests():
    """Returns the largest requests: signature, inputs, and what refuses it.

    A request that is not refused must be answered.
    """
    long = b"word " * 2_000
    nothing = np.full(2, np.nan)
    sides = ("source", "target")
    return [
        ("serving_default", {"text": strings([long] * 1_000)}, None),
        ("translate_greedy", {"text": strings([b"a"] * 1_000)}, None),
        ("serving_default", {"text": strings([b"abc " * (LONG // 4)])}, None),
        ("serving_default", {"text": strings([b"\xff" * LONG])}, None),
        ("translate_nbest", nbest_inputs([b"a b"] * 32, 100, extra=1_000), None),
        (
            "translate_nbest",
            nbest_inputs([long] * 1_000, 100, extra=1_000),
            "must be at most",
        ),
        ("translate_nbest", nbest_inputs([b"a"], 101), "between 1 and 100"),
        (
            "translate_options",
            options_inputs([long] * 2, nothing, [1_000, -1], [long, b"\0"]),
            None,
        ),
        ("score", {n: strings([long] * 100) for n in sides}, None),
        ("explain", {n: strings([long] * 1_000) for n in sides}, "must be at most"),
    ]


def send_largest(address, names, until, report, lock):
    """Sends the largest requests, one after the other."""
    requests = [request for request in largest_requests() if request[0] in names]
    with connect(address) as stub:
        for name, inputs, refusal in itertools.cycle(requests):
            if time.monotonic() >= until:
                return
            # Alone: a refusal is that of all with which it would be answered.
            asked = ("score",) if "score" in names[name].outputs else ()
            started, wrong = time.monotonic(), []
            try:
                found = invalid_outputs(predict(stub, name, inputs, asked))
                wrong = [f"{name} of the worst: {f[:80]}" for f in found]
                wrong += [f"{name}: not refused"] * (refusal is not None)
            except grpc.RpcError as error:
                if refusal is None or refusal not in error.details():
                    with lock:
                        report.errors.append(f"{name} of the worst: {error}")
                    continue
            with lock:
                report.add(time.monotonic() - started, 0, wrong)


def send_requests(address, texts, alone, until, seed, report, lock):
    """Sends requests one after the other, and checks the answers."""
    random = np.random.default_rng(seed)
    signatures = sorted({signature for signature, _ in alone})
    with connect(address) as stub:
        while time.monotonic() < until:
            signature = signatures[random.integers(len(signatures))]
            picks = random.integers(len(texts), size=random.integers(1, 9))
            asked = [texts[pick] for pick in picks]
            started = time.monotonic()
            try:
                outputs = predict_texts(stub, signature, asked)
                wrong = invalid_outputs(outputs)
                for text, found in zip(asked, to_rows(outputs), strict=True):
                    wrong += [
                        f"{signature}, {text[:40]}…: {difference}"
                        for difference in differences(found, alone[signature, text])
                    ]
            # An error of the server or of the number of rows: the client
            # continues.
            except (grpc.RpcError, ValueError) as error:
                with lock:
                    report.errors.append(f"{signature}: {error}")
                continue
            with lock:
                report.add(time.monotonic() - started, len(asked), wrong)


def answer_alone(stub, names, texts):
    """Returns the rows that each signature answers, by signature and text."""
    return {
        (signature, text): to_rows(predict_texts(stub, signature, [text]))[0]
        for signature in REQUESTS
        if signature in names
        for text in texts
    }


@contextlib.contextmanager
def connect(address):
    """Yields the stub of a server."""
    # The heat maps of long texts take more than gRPC's 4 MB.
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
    ]
    with grpc.insecure_channel(address, options) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def predict_texts(stub, signature, texts):
    inputs = REQUESTS[signature](texts)
    return predict(stub, signature, inputs, FILTERS.get(signature, ()))


def predict(stub, signature, inputs, output_filter=()):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "translator"
    request.model_spec.signature_name = signature
    request.output_filter.extend(output_filter)
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    response = stub.Predict(request, timeout=1800)
    return {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}


def serve(export_dir, connection):
    """Serves until the other end of a connection is closed."""
    servable = Servable(export_dir).with_batching(**BATCHING)
    with serve_grpc(servable) as address:
        connection.send(address)
        with contextlib.suppress(EOFError):
            connection.recv()


@contextlib.contextmanager
def server_process(export_dir):
    """Yields address and process id of a server."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(export_dir, there))
    process.start()
    there.close()
    try:
        yield here.recv(), process.pid
    finally:
        here.close()
        process.join()


def resident_bytes(pid, field="VmRSS"):
    """Returns the memory of a process; `"VmHWM"` is the most it had."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def run_load(
    export_dir, seconds, num_clients=8, num_worst=2, num_texts=200, samples=200
):
    """Loads a server for some seconds; returns the `Report`.

    `num_clients` threads send, `num_worst` of them the largest requests; the
    others choose from `num_texts` texts. Memory is measured `samples` times.
    """
    names = served_signatures(
        read_meta_graph(find_version(pathlib.Path(export_dir), SAVED_MODEL))
    )
    texts = make_texts(num_texts)
    report, lock = Report(), threading.Lock()
    with server_process(export_dir) as (address, pid):
        with connect(address) as stub:
            alone = answer_alone(stub, names, texts)
        report.before = resident_bytes(pid)
        started = time.monotonic()
        until = started + seconds
        clients = [
            threading.Thread(
                target=send_largest, args=(address, names, until, report, lock)
            )
            if seed < num_worst
            else threading.Thread(
                target=send_requests,
                args=(address, texts, alone, until, seed, report, lock),
            )
            for seed in range(num_clients)
        ]
        for client in clients:
            client.start()
        while (now := time.monotonic()) < until:
            report.memory.append((now - started, resident_bytes(pid)))
            time.sleep(min(seconds / samples, max(until - now, 0)))
        for client in clients:
            client.join()
        report.peak = resident_bytes(pid, "VmHWM")
    return report
