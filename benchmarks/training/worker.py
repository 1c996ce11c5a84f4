"""Worker process that runs one system of `benchmarks.training` on request.

Reads lines from standard input. At first, and after each line, it writes a
line of JSON. The first holds peak memory and counts, or why there will be no
more of them; the others hold seconds.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable

from benchmarks.shared.model_sizes import SIZES, count_flops, make_batch
from benchmarks.shared.worker_reporting import peak_memory, report

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


def run(args: argparse.Namespace) -> None:
    module_name, make, prepare = SYSTEMS[args.system]
    size = SIZES[args.size]
    module = importlib.import_module(f"benchmarks.training.{module_name}")
    update = getattr(module, make)(size, args.precision)
    product = module.make_product(args.product_width, args.precision)
    product()
    batches, first = {}, {}
    for fill in sorted(args.fills):  # Peak memory can only grow.
        batch = make_batch(size, fill)
        tokens = int(batch["num_tokens"])
        positions = size.rows * size.length
        batches[fill] = getattr(module, prepare)(batch)
        losses = [update(batches[fill]) for _ in range(3)]
        first[fill] = {
            "target_tokens": tokens,
            "flops": count_flops(
                size, tokens if args.system == "package" else positions
            ),
            "peak_bytes": peak_memory(),
            "first_losses": losses,
        }
    report({"product_width": args.product_width, "fills": first})
    for _ in sys.stdin:
        times = {
            fill: mean_seconds(lambda batch=batch: update(batch), args.steps)
            for fill, batch in batches.items()
        }
        report({"product": mean_seconds(product, 1), "updates": times})


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.worker")
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--precision")
    parser.add_argument("--fills", type=float, nargs="+")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--product-width", type=int)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    try:
        run(args)
    except ImportError as error:
        report({"left_out": str(error)})


if __name__ == "__main__":
    main()
