"""Measures `python -m export.serve` under load, beside a plain loop.

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
import functools
import http.client
import itertools
import json
import pathlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from export.serve.models import load_model
from export.serve.segmentation import split_texts

REQUESTS = 200
MAX_LINES = 4
MAX_BYTES = 4000
DOCUMENT_CHARACTERS = 20_000


class Load:
    """Seconds of requests, their sentences, and what went wrong, counted."""

    def __init__(self):
        self.seconds, self.sentences = [], 0
        self.problems = collections.Counter()  # By status, or "wrong".

    def summarize(self, elapsed_seconds: float) -> dict:
        p50, p99 = np.percentile(self.seconds or [np.nan], [50, 99])
        return {
            "requests": len(self.seconds),
            "problems": dict(self.problems),
            "sentences_per_second": round(self.sentences / elapsed_seconds, 1),
            "p50_ms": round(1000 * p50, 1),
            "p99_ms": round(1000 * p99, 1),
        }


def make_requests(sentences: list[str]) -> list[str]:
    """Returns texts of one to four sentences."""
    draw = random.Random(0)
    lines = itertools.cycle(sentences)
    return [
        "\n".join(itertools.islice(lines, draw.randint(1, MAX_LINES)))
        for _ in range(REQUESTS)
    ]


def make_document(sentences: list[str]) -> str:
    """Returns an HTML document of 20,000 characters."""
    document, lines = "", itertools.cycle(sentences)
    while len(document) < DOCUMENT_CHARACTERS - 200:
        first, _, rest = next(lines).partition(" ")
        document += f"<p><b>{first}</b> {rest}</p>"
    return document


def run_plain_loop(
    export_dir: pathlib.Path, texts: list[str], seconds: float
) -> tuple[dict, dict[str, tuple[str, int]]]:
    """Translates texts one after the other.

    Returns a summary, and the answer to each text with its number of sentences.
    """
    model, load, answers = load_model(export_dir), Load(), {}
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
    return load.summarize(time.monotonic() - started), answers


def send_requests(
    port: int,
    texts: list[str],
    load: Load,
    done: threading.Event,
    answers: dict | None = None,
    form: str = "text",
) -> None:
    """Sends texts one after the other, again and again, until an event.

    The service must repeat the `answers` of `run_plain_loop`; without them each
    text counts as a sentence.
    """
    fields = {"source": "en", "target": "xx", "format": form}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        for text in itertools.cycle(texts):
            began = time.monotonic()
            if done.is_set():
                return
            connection.request("POST", "/translate", json.dumps({"q": text, **fields}))
            response = connection.getresponse()
            answer = json.loads(response.read())
            load.seconds.append(time.monotonic() - began)
            wanted, sentences = answers[text] if answers else (None, 1)
            load.sentences += sentences
            if response.status != 200:
                load.problems[response.status] += 1
            elif answers and answer["translatedText"] != wanted:
                load.problems["wrong"] += 1


def run_clients(seconds: float, clients: list[Callable]) -> float:
    """Runs clients for some seconds; returns when the last one had ended."""
    done = threading.Event()
    threads = [
        threading.Thread(target=client, kwargs={"done": done}) for client in clients
    ]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    done.set()
    for thread in threads:
        thread.join()
    return time.monotonic() - started


@contextlib.contextmanager
def service(export_dir: pathlib.Path) -> Iterator[tuple[int, int]]:
    """Yields port and process id of a service."""
    process = subprocess.Popen(
        [sys.executable, "-m", "export.serve", "--port=0"]
        + [f"--pair=en:xx={export_dir}"],
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


def measure_load(args: argparse.Namespace, sentences: list[str]) -> dict:
    """Returns the load of several clients, beside the plain loop."""
    texts = make_requests(sentences)
    seconds = 60 * args.minutes
    plain, answers = run_plain_loop(args.export_dir, texts, min(seconds, 30))
    orders = [random.Random(i).sample(texts, len(texts)) for i in range(args.clients)]
    with service(args.export_dir) as (port, pid):
        halves, memory = {}, [resident_mib(pid)]
        for half in ("first_half", "second_half"):
            load = Load()
            clients = [
                functools.partial(send_requests, port, order, load, answers=answers)
                for order in orders
            ]
            halves[half] = load.summarize(run_clients(seconds / 2, clients))
            memory.append(resident_mib(pid))
    return {
        "plain_loop": plain,
        "service": halves,
        "clients": args.clients,
        "memory_mib": memory,
    }


def measure_latency(
    port: int,
    sentences: list[str],
    seconds: float,
    clients: int = 1,
    document: str | None = None,
) -> dict:
    """Returns summaries of requests of one sentence, and of a document."""
    loads = {"sentences": Load()}
    started = [
        functools.partial(
            send_requests, port, sentences[client::clients], loads["sentences"]
        )
        for client in range(clients)
    ]
    if document:
        loads["documents"] = Load()
        started.append(
            functools.partial(
                send_requests, port, [document], loads["documents"], form="html"
            )
        )
    elapsed = run_clients(seconds, started)
    return {name: load.summarize(elapsed) for name, load in loads.items()}


def compare_latencies(args: argparse.Namespace, sentences: list[str]) -> dict:
    """Returns the latencies of one client, of two, and beside a document."""
    document = make_document(sentences)
    with service(args.export_dir) as (port, _):
        measure = functools.partial(measure_latency, port, sentences)
        measure(2, 2, document)  # Warm up.
        return {
            "one_client": measure(args.latency),
            "two_clients": measure(args.latency, 2),
            "beside_html": measure(args.latency, document=document),
        }


def resident_mib(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service_load", description=__doc__.splitlines()[0]
    )
    add = parser.add_argument
    add("--export-dir", required=True, type=pathlib.Path)
    add("--input", required=True, type=pathlib.Path)
    add("--minutes", type=float, default=30)
    add("--clients", type=int, default=8)
    add("--latency", type=float, metavar="SECONDS")
    args = parser.parse_args(argv)
    sentences = args.input.read_text("utf-8").splitlines()
    measure = compare_latencies if args.latency else measure_load
    report = measure(args, sentences)
    print(json.dumps(report, indent=2))
    halves = report.get("service", {}).values()
    raise SystemExit(any(half["problems"] for half in halves))


if __name__ == "__main__":
    main()
