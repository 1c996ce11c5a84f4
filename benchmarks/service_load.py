"""Measures `python -m serve` under load, beside a plain loop.

    python -m benchmarks.service_load --export-dir exports/demo \\
        --input runs/demo/demo/test.en --minutes 30

Each client sends one to four lines of the file, and the next when it has the
answer, which must be that of the plain loop: the same requests, one after the
other, in one process without HTTP.

With `--latency SECONDS` it measures instead, for so long each, requests of one
sentence: of one client, of two, and of one while another client sends again and
again an HTML document or a text of 20,000 characters, or sentences in fifty
connections.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import pathlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from translate.loading import load_export
from translate.segmentation import split_texts

REQUESTS = 200
MAX_LINES = 4
MAX_BYTES = 4000
DOCUMENT_CHARACTERS = 20_000
CONNECTIONS = 50  # Those of a client with many requests.
LIGHT, HEAVY = "192.0.2.1", "192.0.2.2"  # Addresses of clients.


class Client:
    """A client of the service: its requests, and what it measured.

    The answers must be `answers`, by text: the translation and its number of
    sentences. Without them each text counts as a sentence. The service takes
    `address` for the client's.
    """

    def __init__(
        self,
        texts: list[str],
        answers: dict | None = None,
        form: str = "text",
        address: str = LIGHT,
    ):
        self.texts, self.answers = texts, answers
        self.form, self.address = form, address
        self.start()

    def start(self) -> None:
        self.seconds, self.sentences = [], 0
        self.problems = collections.Counter()  # By status, or "wrong".

    def run(self, port: int, seconds: float) -> None:
        """Sends the texts one after the other, again and again, for some time."""
        self.start()
        fields = {"source": "en", "target": "xx", "format": self.form}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        end = time.monotonic() + seconds
        with contextlib.closing(connection):
            for text in itertools.cycle(self.texts):
                began = time.monotonic()
                if began > end:
                    return
                body = json.dumps({"q": text, **fields})
                headers = {"X-Forwarded-For": self.address}
                connection.request("POST", "/translate", body, headers)
                response = connection.getresponse()
                answer = json.loads(response.read())
                self.seconds.append(time.monotonic() - began)
                wanted, sentences = (self.answers or {}).get(text, (None, 1))
                self.sentences += sentences
                if response.status != 200:
                    self.problems[response.status] += 1
                elif self.answers and answer["translatedText"] != wanted:
                    self.problems["wrong"] += 1


def summarize(clients: list[Client], elapsed_seconds: float) -> dict:
    """Returns what clients measured together."""
    seconds = [each for client in clients for each in client.seconds]
    sentences = sum(client.sentences for client in clients)
    p50, p99 = np.percentile(seconds or [np.nan], [50, 99])
    return {
        "requests": len(seconds),
        "problems": sum((c.problems for c in clients), collections.Counter()),
        "sentences_per_second": round(sentences / elapsed_seconds, 1),
        "p50_ms": round(1000 * p50, 1),
        "p99_ms": round(1000 * p99, 1),
    }


def make_texts(sentences: list[str]) -> list[str]:
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
    model, load, answers = load_export(export_dir), Client(texts), {}
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
    return summarize([load], time.monotonic() - started), answers


def run_clients(port: int, seconds: float, **groups: list[Client]) -> dict[str, dict]:
    """Runs groups of clients at the same time; returns a summary of each group."""
    clients = list(itertools.chain.from_iterable(groups.values()))
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(lambda client: client.run(port, seconds), clients))
    elapsed = time.monotonic() - started
    return {name: summarize(group, elapsed) for name, group in groups.items()}


@contextlib.contextmanager
def service(export_dir: pathlib.Path) -> Iterator[tuple[int, int]]:
    """Yields port and process id of a service."""
    process = subprocess.Popen(
        [sys.executable, "-m", "serve", "--port=0", f"--pair=en:xx={export_dir}"]
        + ["--trusted-proxies=127.0.0.1"],
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
    texts = make_texts(sentences)
    seconds = 60 * args.minutes
    plain, answers = run_plain_loop(args.export_dir, texts, min(seconds, 30))
    orders = [random.Random(i).sample(texts, len(texts)) for i in range(args.clients)]
    clients = [Client(order, answers) for order in orders]
    with service(args.export_dir) as (port, pid):
        halves, memory = {}, [resident_mib(pid)]
        for half in ("first_half", "second_half"):
            halves |= run_clients(port, seconds / 2, **{half: clients})
            memory.append(resident_mib(pid))
    return {
        "plain_loop": plain,
        "service": halves,
        "clients": args.clients,
        "memory_mib": memory,
    }


def measure_latencies(args: argparse.Namespace, sentences: list[str]) -> dict:
    """Returns the latencies of one client, of two, and beside another client."""
    one = [Client(sentences)]
    two = [Client(sentences[i::2]) for i in range(2)]
    document = make_document(sentences)
    text = "\n".join(sentences * 100)[:DOCUMENT_CHARACTERS]
    others = {
        "html": [Client([document], form="html", address=HEAVY)],
        "long_text": [Client([text], address=HEAVY)],
        "many_requests": [Client(sentences, address=HEAVY) for _ in range(CONNECTIONS)],
    }
    with service(args.export_dir) as (port, _):
        run_clients(port, 2, sentences=two, **others)  # Warm up.
        report = {
            "one_client": run_clients(port, args.latency, sentences=one),
            "two_clients": run_clients(port, args.latency, sentences=two),
        }
        for name, group in others.items():
            found = run_clients(port, args.latency, sentences=one, **{name: group})
            report[f"beside_{name}"] = found
    return report


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
    measure = measure_latencies if args.latency else measure_load
    report = measure(args, sentences)
    print(json.dumps(report, indent=2))
    halves = report.get("service", {}).values()
    raise SystemExit(any(half["problems"] for half in halves))


if __name__ == "__main__":
    main()
