"""Worker process that runs one system of `benchmarks.training` on request."""

import importlib
import time
from collections.abc import Callable

from benchmarks.shared.interleaved_runs import answer_orders, peak_memory
from benchmarks.shared.model_sizes import SIZES, count_flops, make_batch

# Shares of a batch's positions that are tokens.
FILLS = (0.75, 1.0)
PRODUCT_WIDTH = 3072  # Of the large product.
# System: module, function that makes the update, function that prepares a
# batch for it.
SYSTEMS = {
    "package": ("keras_systems", "make_package_update", "prepare_package"),
    "pytorch": ("torch_system", "make_update", "prepare"),
    "keras-hub": ("keras_systems", "make_keras_hub_update", "prepare_tuples"),
    "keras": ("keras_systems", "make_keras_update", "prepare_tuples"),
}


def mean_seconds(function: Callable[[], float], times: int) -> float:
    """Returns the mean time of a call."""
    started = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - started) / times


def start(options: dict) -> tuple[dict, Callable[[str], dict]]:
    """Makes the system, and counts memory and operations by fill."""
    module_name, make, prepare = SYSTEMS[options["system"]]
    size = SIZES[options["size"]]
    module = importlib.import_module(f"benchmarks.training.{module_name}")
    update = getattr(module, make)(size, options["precision"])
    product = module.make_product(PRODUCT_WIDTH, options["precision"])
    product()
    batches, first = {}, {}
    for fill in FILLS:  # Peak memory can only grow.
        batch = make_batch(size, fill)
        tokens = int(batch["num_tokens"])
        is_package = options["system"] == "package"
        batches[fill] = getattr(module, prepare)(batch)
        for _ in range(3):
            update(batches[fill])
        first[fill] = {
            "target_tokens": tokens,
            "flops": count_flops(size, tokens if is_package else batch["labels"].size),
            "peak_bytes": peak_memory(),
        }

    def answer(_) -> dict:
        times = {
            fill: mean_seconds(lambda batch=batch: update(batch), options["steps"])
            for fill, batch in batches.items()
        }
        return {"product": mean_seconds(product, 1), "updates": times}

    return {"fills": first}, answer


if __name__ == "__main__":
    answer_orders(start)
