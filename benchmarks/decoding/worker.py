"""Worker process that runs one system of `benchmarks.decoding` on request.

First it loads the model and decodes a few short sentences, so that libraries are
started and functions traced. Then it gets names of cases, and decodes their batches.
"""

import json
import pathlib
import time
from collections.abc import Callable

from benchmarks.decoding import systems
from benchmarks.decoding.loading import Setting, Translate
from benchmarks.interleaved_runs import Threads, answer_orders, peak_memory

WARM_UP_CASE = "warm-up"  # The case that is not timed.


def decode(translate: Translate, batches: list[dict]) -> dict[str, list]:
    """Returns the seconds of each batch, and all translations in order."""
    seconds, outputs = [], []
    for batch in batches:
        started = time.perf_counter()
        outputs += translate(batch)
        seconds.append(time.perf_counter() - started)
    return {"seconds": seconds, "outputs": outputs}


def start(options: dict) -> Callable[[str], dict]:
    started = time.perf_counter()
    folder, threads = pathlib.Path(options["folder"]), Threads(*options["threads"])
    setting = Setting(folder, threads, *options["setting"])
    translate = getattr(systems, options["load"])(setting)
    cases = json.loads(pathlib.Path(options["cases"]).read_text())
    decode(translate, cases[WARM_UP_CASE])
    start_seconds = time.perf_counter() - started

    def answer(case: str) -> dict:
        found = decode(translate, cases[case])
        return {**found, "start_seconds": start_seconds, "peak_bytes": peak_memory()}

    return answer


if __name__ == "__main__":
    answer_orders(start)
