"""Loads a server, and looks for errors and measures its memory.

    python -m tests.load --export-dir exports/mine --minutes 30

Clients send requests of one to eight texts to all signatures over gRPC, to a
server that is a process of its own. Every row must be answered as its text was
when it was asked alone, before. Some clients send the largest requests, and those
that must be refused, instead.
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
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
    REQUESTS,
    differences,
    invalid_outputs,
    nbest_inputs,
    options_inputs,
    strings,
    to_rows,
)

LONG = 4_000_000  # Bytes.
NUM_CLIENTS = 8
NUM_WORST = 2  # Of these, the number that sends the largest requests.
SAMPLES = 200  # How often memory is measured.


@dataclasses.dataclass
class Report:
    """What clients found; threads only append, which needs no lock."""

    texts: list = dataclasses.field(default_factory=list)  # Of each answer.
    errors: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    memory: list = dataclasses.field(default_factory=list)  # Bytes.
    before: int = 0
    peak: int = 0

    def growth(self):
        """Returns how memory grew over the second half: its last fifth by the first."""
        half = self.memory[len(self.memory) // 2 :]
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


def largest_requests(names):
    """Yields the largest requests forever: see `send`."""
    long, most = b"word " * 2_000, "must be at most"
    numbers = np.full(2, np.nan), [1_000, -1], [long, b"\0"]
    requests = [
        ("serving_default", {"text": strings([long] * 1_000)}, None),
        ("serving_default", {"text": strings([b"a"] * 1_000)}, None),
        ("serving_default", {"text": strings([b"abc " * (LONG // 4)])}, None),
        ("serving_default", {"text": strings([b"\xff" * LONG])}, None),
        ("translate_nbest", nbest_inputs([b"a b"] * 32, 100, extra=1_000), None),
        ("translate_nbest", nbest_inputs([long] * 1_000, 100, extra=1_000), most),
        ("translate_nbest", nbest_inputs([b"a"], 101), "between 1 and 100"),
        ("translate_options", options_inputs([long] * 2, *numbers), None),
        ("score", REQUESTS["score"]([long] * 100), None),
        ("explain", REQUESTS["explain"]([long] * 1_000), most),
    ]
    for name, inputs, refusal in itertools.cycle(requests):
        if name in names:
            # Alone: a refusal is that of all with which it would be answered.
            outputs = ("score",) if "score" in names[name].outputs else ()
            yield name, inputs, outputs, [], refusal


def random_requests(texts, alone, seed):
    """Yields requests of some texts to any signature forever: see `send`."""
    random = np.random.default_rng(seed)
    signatures = sorted({signature for signature, _ in alone})
    while True:
        name = signatures[random.integers(len(signatures))]
        picks = random.integers(len(texts), size=random.integers(1, 9))
        asked = [texts[pick] for pick in picks]
        expected = [alone[name, text] for text in asked]
        yield name, REQUESTS[name](asked), (), expected, None


def send(address, requests, until, report):
    """Sends requests one after the other, and checks the answers.

    A request is a signature, inputs, the outputs to ask for, the rows that are
    expected, if any, and what the message of its refusal contains, or `None`.
    """
    with connect(address) as stub:
        for name, inputs, outputs, expected, refusal in requests:
            if time.monotonic() >= until:
                return
            try:
                found = predict(stub, name, inputs, outputs)
                wrong = invalid_outputs(found)
                wrong += ["not refused"] * (refusal is not None)
                rows = to_rows(found) if expected else []
                for row, alone in zip(rows, expected, strict=True):
                    wrong += differences(row, alone)
                report.wrong += [f"{name}: {text[:200]}" for text in wrong]
            # An error of the server, or another number of rows.
            except (grpc.RpcError, ValueError) as error:
                if refusal is None or refusal not in str(error):
                    report.errors.append(f"{name}: {error}")
                    continue
            report.texts.append(len(expected))


@contextlib.contextmanager
def connect(address):
    # The heat maps of long texts take more than gRPC's 4 MB.
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
    ]
    with grpc.insecure_channel(address, options) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


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
    with serve_grpc(Servable(export_dir)) as address:
        connection.send(address)
        with contextlib.suppress(EOFError):
            connection.recv()


@contextlib.contextmanager
def server_process(export_dir):
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


def run_load(export_dir, seconds, num_texts):
    """Loads a server for some seconds; returns the `Report`."""
    names = served_signatures(read_meta_graph(find_version(export_dir, SAVED_MODEL)))
    texts, report = make_texts(num_texts), Report()
    with server_process(export_dir) as (address, pid):
        with connect(address) as stub:
            alone = {}
            for name, text in itertools.product(sorted(names.keys() & REQUESTS), texts):
                found = predict(stub, name, REQUESTS[name]([text]))
                (alone[name, text],) = to_rows(found)
        report.before = resident_bytes(pid)
        until = time.monotonic() + seconds
        clients = []
        for seed in range(NUM_CLIENTS):
            requests = random_requests(texts, alone, seed)
            if seed < NUM_WORST:
                requests = largest_requests(names)
            arguments = address, requests, until, report
            clients.append(threading.Thread(target=send, args=arguments))
            clients[-1].start()
        while (left := until - time.monotonic()) > 0:
            report.memory.append(resident_bytes(pid))
            time.sleep(min(seconds / SAMPLES, left))
        for client in clients:
            client.join()
        report.peak = resident_bytes(pid, "VmHWM")
    return report


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export-dir", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--texts", type=int, default=200, help="distinct ones")
    args = parser.parse_args(argv)
    report = run_load(args.export_dir, 60 * args.minutes, args.texts)
    found = {
        "requests": len(report.texts),
        "texts": sum(report.texts),
        "errors": len(report.errors),
        "wrong": len(report.wrong),
        "examples": report.errors[:5] + report.wrong[:20],
        "growth_of_second_half": round(report.growth(), 4),
        "before_mib": report.before >> 20,
        "peak_mib": report.peak >> 20,
    }
    print(json.dumps(found, indent=2))
    raise SystemExit(bool(report.errors or report.wrong))


if __name__ == "__main__":
    main()
