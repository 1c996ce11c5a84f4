"""Worker process that runs one system of `benchmarks.training` on request.

It gets the fill of a batch, and updates the weights, or `PRODUCT`, and
multiplies two large matrices.
"""

import functools
import importlib
import time
from collections.abc import Callable

from benchmarks.interleaved_runs import answer_orders, peak_memory
from benchmarks.model_sizes import SIZES
from benchmarks.training.random_batches import count_flops, make_batch

# Shares of a batch's positions that are tokens. Peak memory can only grow.
FILLS = ("0.75", "1.0")
PRODUCT = "product"
PROBE = "probe"  # One update, to choose the threads.
PRODUCT_WIDTH = 3072
# System: module, and the function that loads it. It returns two functions: one
# prepares a batch, one updates the weights with such a batch, some times, and
# returns the last loss.
SYSTEMS = {
    "package": ("keras_systems", "load_package"),
    "pytorch": ("torch_system", "load"),
    "keras-hub": ("keras_systems", "load_keras_hub"),
}


def mean_seconds(function: Callable[..., float], *arguments, times: int) -> float:
    """Returns the mean time of what a function does `times` times."""
    started = time.perf_counter()
    function(*arguments, times)
    return (time.perf_counter() - started) / times


def start(options: dict) -> Callable[[str], dict]:
    system, precision, steps = (options[k] for k in ("system", "precision", "steps"))
    module_name, load = SYSTEMS[system]
    size = SIZES[options["size"]]
    module = importlib.import_module(f"benchmarks.training.{module_name}")
    prepare, update = getattr(module, load)(size, precision)
    product = module.make_product(PRODUCT_WIDTH, precision)
    product(1)
    full = make_batch(size, fill=1.0)

    @functools.cache
    def warm_up(fill: str) -> tuple:
        batch = make_batch(size, float(fill))
        prepared = prepare(batch)
        update(prepared, 3)
        tokens = int(batch["num_tokens"])
        num_logits = tokens if system == "package" else batch["labels"].size
        flops = count_flops(size, num_logits)
        return prepared, {"target_tokens": tokens, "flops": flops}

    def answer(order: str) -> dict:
        if order == PRODUCT:
            return {"seconds": mean_seconds(product, times=steps)}
        if order == PROBE:
            return {"seconds": mean_seconds(update, prepare(full), times=1)}
        batch, counts = warm_up(order)
        seconds = mean_seconds(update, batch, times=steps)
        return {"seconds": seconds, "peak_bytes": peak_memory(), **counts}

    return answer


if __name__ == "__main__":
    answer_orders(start)
