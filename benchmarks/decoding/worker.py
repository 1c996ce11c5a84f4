"""Worker process that runs one system of `benchmarks.decoding` on request.

First it decodes a few short sentences, so that libraries are started and
functions traced. Then it gets names of cases, and decodes their batches.
"""

import json
import pathlib
import time
from collections.abc import Callable

from benchmarks.decoding import systems
from benchmarks.interleaved_runs import NotMeasuredError, answer_orders, peak_memory
from benchmarks.model_sizes import EOS_ID

WARM_UP_CASE = "warm-up"  # The case that is not timed.


def decode(translate: systems.Translate, batches: list[dict]) -> dict[str, list]:
    """Returns the seconds of each batch, and all translations in order."""
    seconds, outputs = [], []
    for batch in batches:
        started = time.perf_counter()
        found = translate(batch)
        seconds.append(time.perf_counter() - started)
        outputs += found if "texts" in batch else cut_ends(found, batch["length"])
    return {"seconds": seconds, "outputs": outputs}


def cut_ends(rows: list[list[int]], length: int | None) -> list[list[int]]:
    """Returns ids without EOS, which some systems return, or without the last.

    Where all have a given `length`, this package ends with EOS, and the other
    systems with another token.
    """
    if length is None:
        return [[i for i in ids if i != EOS_ID] for ids in rows]
    for ids in rows:
        if len(ids) != length:
            raise NotMeasuredError(f"decoded {len(ids)} tokens instead of {length}")
    return [ids[:-1] for ids in rows]


def start(options: dict) -> Callable[[str], dict]:
    setting = systems.Setting(pathlib.Path(options["folder"]), *options["setting"])
    translate = getattr(systems, options["load"])(setting)
    cases = json.loads(pathlib.Path(options["cases"]).read_text())
    decode(translate, cases[WARM_UP_CASE])
    return lambda case: {**decode(translate, cases[case]), "peak_bytes": peak_memory()}


if __name__ == "__main__":
    answer_orders(start)
