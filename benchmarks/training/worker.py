"""Worker process that runs one system of `benchmarks.training` on request.

It gets the fill of a batch, and updates the weights with such a batch.
"""

import functools
import importlib
import time
from collections.abc import Callable

from benchmarks.constants import SIZES
from benchmarks.interleaved_runs import answer_orders, peak_memory
from benchmarks.training.random_batches import make_batch

# Shares of a batch's positions that are tokens. Peak memory can only grow.
FILLS = ("0.75", "1.0")
PROBE = "probe"  # One update, to choose the threads.
# System: module, and the function that loads it. It returns two functions: one
# prepares a batch, one updates the weights with such a batch, some times, and
# returns the last loss.
SYSTEMS = {
    "package": ("keras_systems", "load_package"),
    "pytorch": ("torch_system", "load"),
    "keras-hub": ("keras_systems", "load_keras_hub"),
}


def start(options: dict) -> Callable[[str], dict]:
    system, precision, steps = (options[k] for k in ("system", "precision", "steps"))
    module_name, load = SYSTEMS[system]
    size = SIZES[options["size"]]
    module = importlib.import_module(f"benchmarks.training.{module_name}")
    prepare, update = getattr(module, load)(size, precision)
    full = make_batch(size, fill=1.0)

    def mean_seconds(batch, times: int) -> float:
        started = time.perf_counter()
        update(batch, times)
        return (time.perf_counter() - started) / times

    @functools.cache
    def warm_up(fill: str) -> tuple:
        batch = make_batch(size, float(fill))
        prepared = prepare(batch)
        update(prepared, 3)
        return prepared, int(batch["num_tokens"])

    def answer(order: str) -> dict:
        if order == PROBE:
            return {"seconds": mean_seconds(prepare(full), 1)}
        batch, tokens = warm_up(order)
        seconds = mean_seconds(batch, steps)
        return {
            "seconds": seconds,
            "peak_bytes": peak_memory(),
            "target_tokens": tokens,
        }

    return answer


if __name__ == "__main__":
    answer_orders(start)
