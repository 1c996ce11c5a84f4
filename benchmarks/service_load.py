"""Measures `python -m serve` under load, beside a plain loop.

    python -m benchmarks.service_load --export-dir exports/demo \\
        --input runs/demo/demo/test.en --minutes 30

Each client sends one to four lines of the file, and the next when it has the
answer, which must be that of the plain loop: the same requests, one after the
other, in one process without HTTP.

With `--latency SECONDS` it measures instead, for so long each, requests of one
sentence: of one client, of two, and of one while another client sends an HTML
document of 20,000 characters again and again.
"""

import argparse
import collections
import contextlib
import dataclasses
import http.client
import itertools
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

import numpy as np

from translate.loading import load_export
from translate.segmentation import split_texts

REQUESTS = 200
MAX_LINES = 4
MAX_BYTES = 4000
DOCUMENT_CHARACTERS = 20_000


@dataclasses.dataclass
class Load:
    """Results of a load test.

    Attributes:
        seconds: List of floats, of each request.
        problems: Counter of what went wrong, by status or `"wrong"`.
        sentences: Int, how many were translated.
        elapsed_seconds: Float, of the whole test.
    """

    seconds: list = dataclasses.field(default_factory=list)
    problems: collections.Counter = dataclasses.field(
        default_factory=collections.Counter
    )
    sentences: int = 0
    elapsed_seconds: float = 0.0

    def summarize(self) -> dict:
        p50, p99 = np.percentile(self.seconds or [np.nan], [50, 99])
        return {
            "requests": len(self.seconds),
            "problems": dict(self.problems),
            "sentences_per_second": round(self.sentences / self.elapsed_seconds, 1),
            "p50_ms": round(1000 * p50, 1),
            "p99_ms": round(1000 * p99, 1),
        }


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service_load", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--export-dir", required=True, type=pathlib.Path)
    parser.add_argument("--input", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--latency", type=float, metavar="SECONDS")
    return parser.parse_args(argv)


def make_requests(path: pathlib.Path) -> list[str]:
    """Returns texts of one to four lines of a file."""
    draw = random.Random(0)
    lines = itertools.cycle(path.read_text("utf-8").splitlines())
    return [
        "\n".join(itertools.islice(lines, draw.randint(1, MAX_LINES)))
        for _ in range(REQUESTS)
    ]


def run_plain_loop(export_dir, texts, seconds) -> tuple[Load, dict]:
    """Translates texts one after the other.

    Returns:
        `Load`, and a dict from texts to pairs: the answer, and how many
        sentences were translated.
    """
    model, load, answers = load_export(export_dir), Load(), {}
    started = time.monotonic()
    for count, text in enumerate(itertools.cycle(texts)):
        began = time.monotonic()
        if began > started + seconds and count >= len(texts):
            break
        (document,) = split_texts([text], "en", MAX_BYTES)
        found = model.translate(document.sentences)
        answer = document.filled([each.text for each in found])
        answers[text] = (answer, len(found))
        load.seconds.append(time.monotonic() - began)
        load.sentences += len(found)
    load.elapsed_seconds = time.monotonic() - started
    return load, answers


def send_requests(port, texts, done, load, answers=None, **fields):
    """Sends texts one after the other, until an event.

    Args:
        port: Int, port of the service.
        texts: List of texts; the last is followed by the first.
        done: `threading.Event` that ends the requests.
        load: The `Load` to update.
        answers: Result of `run_plain_loop`, which the service must repeat, or
            `None`: then each text counts as a sentence.
        **fields: Further fields of the requests.
    """
    fields = {"source": "en", "target": "xx", **fields}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        for text in itertools.cycle(texts):
            began = time.monotonic()
            if done.is_set():
                return
            body = json.dumps({"q": text, **fields})
            connection.request("POST", "/translate", body)
            response = connection.getresponse()
            answer = json.loads(response.read())
            load.seconds.append(time.monotonic() - began)
            wanted, sentences = answers[text] if answers else (None, 1)
            load.sentences += sentences
            if response.status != 200:
                load.problems[response.status] += 1
            elif answers and answer["translatedText"] != wanted:
                load.problems["wrong"] += 1


def run_for(seconds, done, threads) -> float:
    """Runs threads until an event, which comes after some seconds.

    Returns:
        The seconds until the last thread had ended.
    """
    started = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    done.set()
    for thread in threads:
        thread.join()
    return time.monotonic() - started


def run_clients(port, texts, answers, seconds, count) -> Load:
    """Sends texts from several threads."""
    load, done = Load(), threading.Event()
    orders = [random.Random(i).sample(texts, len(texts)) for i in range(count)]
    clients = [
        threading.Thread(target=send_requests, args=(port, order, done, load, answers))
        for order in orders
    ]
    load.elapsed_seconds = run_for(seconds, done, clients)
    return load


@contextlib.contextmanager
def service(export_dir):
    """Yields port and process id of a service."""
    process = subprocess.Popen(
        [sys.executable, "-m", "serve", "--port=0"] + [f"--pair=en:xx={export_dir}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        process.stdout.readline()
        address = process.stdout.readline()
        try:
            yield int(address.rpartition(":")[2].strip("/\n")), process.pid
        finally:
            process.terminate()


def measure_latency(port, sentences, seconds, clients=1, document=None) -> dict:
    """Returns summaries of requests of one sentence, and of a document."""
    load, documents, done = Load(), Load(), threading.Event()
    threads = [
        threading.Thread(
            target=send_requests, args=(port, sentences[client::clients], done, load)
        )
        for client in range(clients)
    ]
    if document:
        threads.append(
            threading.Thread(
                target=send_requests,
                args=(port, [document], done, documents),
                kwargs={"format": "html"},
            )
        )
    elapsed = run_for(seconds, done, threads)
    load.elapsed_seconds = documents.elapsed_seconds = elapsed
    found = {"sentences": load.summarize()}
    if document:
        found["documents"] = documents.summarize()
    return found


def make_document(sentences: list[str]) -> str:
    """Returns an HTML document of 20,000 characters."""
    document, number = "", itertools.count()
    while len(document) < DOCUMENT_CHARACTERS - 200:
        words = sentences[next(number) % len(sentences)].split()
        document += f"<p><b>{words[0]}</b> {' '.join(words[1:])}</p>"
    return document


def compare_latencies(args) -> dict:
    """Returns the latencies that `--latency` asks for."""
    sentences = args.input.read_text("utf-8").splitlines()
    document = make_document(sentences)
    with service(args.export_dir) as (port, _):
        measure_latency(port, sentences, 2, 2, document)  # Warm up.
        return {
            "one_client": measure_latency(port, sentences, args.latency),
            "two_clients": measure_latency(port, sentences, args.latency, 2),
            "beside_html": measure_latency(
                port, sentences, args.latency, document=document
            ),
        }


def resident_mib(pid) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10


def main(argv=None):
    args = parse_arguments(argv)
    if args.latency:
        print(json.dumps(compare_latencies(args), indent=2))
        return
    texts = make_requests(args.input)
    seconds = 60 * args.minutes
    plain, answers = run_plain_loop(args.export_dir, texts, min(seconds, 30))
    with service(args.export_dir) as (port, pid):
        half = [port, texts, answers, seconds / 2, args.clients]
        loads, memory = [], [resident_mib(pid)]
        for _ in range(2):
            loads.append(run_clients(*half).summarize())
            memory.append(resident_mib(pid))
    report = {
        "plain_loop": plain.summarize(),
        "service": dict(zip(("first_half", "second_half"), loads, strict=True)),
        "clients": args.clients,
        "memory_mib": memory,
    }
    print(json.dumps(report, indent=2))
    raise SystemExit(any(load["problems"] for load in loads))


if __name__ == "__main__":
    main()
