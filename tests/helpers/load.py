"""Loads the model server of the tests, and looks for errors and for leaks.

    python -m tests.helpers.load --export-dir exports/mine --minutes 30

Clients send requests of one to eight texts to all signatures over gRPC, to a
server that runs them in common batches. Every row must be answered as its
text was when it was asked alone, before.
"""

import argparse
import dataclasses
import gc
import json
import pathlib
import threading
import time

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from tests.helpers.model_server import serve_grpc
from tests.helpers.requests import FILTERS
from tests.helpers.requests import REQUESTS
from tests.helpers.requests import differences
from tests.helpers.requests import faults
from tests.helpers.requests import rows
from tests.helpers.sentences import NASTY
from tests.helpers.sentences import SENTENCES
from tests.helpers.servable import Servable

BATCHING = {"timeout": 0.005, "pad_variable_length_inputs": True}
PAGE = 4096  # Bytes, the unit of statm.
MAX_GROWTH = 0.02  # Of memory, over the second half.


@dataclasses.dataclass
class Report:
    """What a load was answered.

    Attributes:
        requests, texts: Ints, how many were answered.
        errors, wrong: Lists of strings: requests that failed, and rows whose
            answer is another than alone.
        memory: List of pairs: seconds since the start, resident bytes.
    """

    requests: int = 0
    texts: int = 0
    errors: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    memory: list = dataclasses.field(default_factory=list)

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


def answer_alone(servable, texts):
    """Returns the rows that each signature answers, by signature and text."""
    return {
        (signature, text): rows(
            servable.predict(signature, ask([text]), FILTERS.get(signature, ()))
        )[0]
        for signature, ask in REQUESTS.items()
        for text in texts
    }


def send_requests(address, texts, alone, until, seed, report, lock):
    """Sends requests one after the other, and checks the answers."""
    random = np.random.default_rng(seed)
    signatures = list(REQUESTS)
    # The heat maps of long texts take more than gRPC's 4 MB.
    options = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, options) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        while time.monotonic() < until:
            signature = signatures[random.integers(len(signatures))]
            picks = random.integers(len(texts), size=random.integers(1, 9))
            asked = [texts[pick] for pick in picks]
            try:
                outputs = predict(stub, signature, asked)
                wrong = faults(outputs)
                for text, found in zip(asked, rows(outputs), strict=True):
                    wrong += [
                        f"{signature}, {text[:40]}…: {difference}"
                        for difference in differences(
                            found, alone[signature, text]
                        )
                    ]
            # Of the server, or of the number of rows: a client goes on.
            except (grpc.RpcError, ValueError) as error:
                with lock:
                    report.errors.append(f"{signature}: {error}")
                continue
            with lock:
                report.requests += 1
                report.texts += len(asked)
                report.wrong += wrong


def predict(stub, signature, texts):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "translator"
    request.model_spec.signature_name = signature
    request.output_filter.extend(FILTERS.get(signature, ()))
    for name, value in REQUESTS[signature](texts).items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    response = stub.Predict(request, timeout=60)
    return {
        name: tf.make_ndarray(proto) for name, proto in response.outputs.items()
    }


def resident_bytes():
    gc.collect()
    statm = pathlib.Path("/proc/self/statm").read_text()
    return int(statm.split()[1]) * PAGE


def run_load(servable, seconds, num_clients=8, num_texts=200, samples=200):
    """Loads a server; server and clients are threads of this process.

    Args:
        servable: `Servable`.
        seconds: Float, for how long.
        num_clients: Int, threads that send.
        num_texts: Int, distinct texts.
        samples: Int, how often memory is looked at.

    Returns:
        `Report`.
    """
    texts = make_texts(num_texts)
    alone = answer_alone(servable, texts)
    report, lock = Report(), threading.Lock()
    with serve_grpc(servable.with_batching(**BATCHING)) as address:
        started = time.monotonic()
        until = started + seconds
        clients = [
            threading.Thread(
                target=send_requests,
                args=(address, texts, alone, until, seed, report, lock),
            )
            for seed in range(num_clients)
        ]
        for client in clients:
            client.start()
        while (now := time.monotonic()) < until:
            report.memory.append((now - started, resident_bytes()))
            time.sleep(min(seconds / samples, max(until - now, 0)))
        for client in clients:
            client.join()
    return report


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.load", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--export-dir", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    servable = Servable(args.export_dir)
    report = run_load(servable, 60 * args.minutes, args.clients)
    mebibytes = [round(bytes_ / 2**20) for _, bytes_ in report.memory]
    print(
        json.dumps(
            {
                "minutes": args.minutes,
                "requests": report.requests,
                "texts": report.texts,
                "errors": len(report.errors),
                "wrong": len(report.wrong),
                "examples": report.errors[:5] + report.wrong[:20],
                "memory_mib": mebibytes[:: max(len(mebibytes) // 20, 1)],
                "growth_of_second_half": round(report.growth(), 4),
            },
            indent=2,
        )
    )
    grows = report.growth() > MAX_GROWTH
    raise SystemExit(bool(report.errors or report.wrong or grows))


if __name__ == "__main__":
    main()
