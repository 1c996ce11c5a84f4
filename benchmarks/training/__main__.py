"""Measures training beside other systems: time, memory, share of peak FLOPs.

    python -m benchmarks.training
    python -m benchmarks.training --sizes tiny --precisions float32 \\
        --systems package pytorch --repetitions 2 --steps 1

Each system runs in its own process. The runs alternate, so that other load on
the machine affects all systems. README.md says what is measured.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from benchmarks.shared.interleaved_runs import (
    ROOT,
    Worker,
    cpu_field,
    list_failures,
    make_environment,
    run_interleaved,
    write_json,
)
from benchmarks.shared.model_sizes import SIZES
from benchmarks.training.report import draw, print_input, print_table
from benchmarks.training.worker import SYSTEMS

PACKAGES = ("keras", "keras-hub", "numpy", "tensorflow", "torch")
# Flags of /proc/cpuinfo that mean products of bfloat16 in hardware.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}


def compare(size: str, precision: str, args) -> tuple[list[dict], list[dict]]:
    """Runs all systems in turn.

    Returns:
        The rows of the table, and those that are left out with their reasons.
    """
    commands = {
        system: [
            *("benchmarks.training.worker", "--system", system, "--size", size),
            *("--precision", precision, "--steps", str(args.steps)),
            *("--fills", *map(str, args.fills)),
            *("--product-width", str(args.product_width)),
        ]
        for system in args.systems
    }
    workers = run_interleaved(
        f"{size} {precision}", commands, [""], args.repetitions, args.threads
    )
    common = {"size": size, "precision": precision}
    rows = make_rows([w for w in workers if not w.left_out], common)
    return rows, list_failures(workers, common)


def make_rows(workers: list[Worker], common: dict) -> list[dict]:
    """Returns a row for each system and fill, with medians."""
    if not workers:
        return []
    product_flops = 2 * workers[0].first["product_width"] ** 3
    # The peak is that of the library that multiplies fastest.
    peak = product_flops / min(
        statistics.median(r["product"] for r in worker.answers) for worker in workers
    )
    rows = []
    for worker in workers:
        for fill, first in worker.first["fills"].items():
            times = [r["updates"][fill] for r in worker.answers]
            middle = statistics.median(times)
            rows.append(
                {
                    **common,
                    "system": worker.system,
                    "fill": float(fill),
                    **first,
                    "seconds": middle,
                    "all_seconds": times,
                    "product_seconds": [r["product"] for r in worker.answers],
                    "tokens_per_second": first["target_tokens"] / middle,
                    "peak_flops": peak,
                    "share_of_peak": first["flops"] / middle / peak,
                }
            )
    return rows


def measure_input(args) -> dict:
    command = [
        *(sys.executable, "-m", "benchmarks.training.input_pipeline"),
        *("--pairs", str(args.input_pairs), "--batch-tokens", "25000"),
        *("--repetitions", str(args.repetitions)),
    ]
    print("input pipeline", file=sys.stderr)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=make_environment(args.threads),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def choose_precisions(given: list[str] | None) -> list[str]:
    if given:
        return given
    flags = set(f"{cpu_field('flags')} {cpu_field('Features')}".split())
    if flags & BFLOAT16_FLAGS:
        return ["float32", "bfloat16"]
    print(
        "bfloat16 is left out: this processor has no products of it "
        "(--precisions bfloat16 measures it all the same)"
    )
    return ["float32"]


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training",
        description="Measures training beside other systems.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--sizes",
        nargs="+",
        choices=SIZES,
        default=["base", "tiny"],
        help="models; check, a toy, is for trying the benchmark itself",
    )
    add(
        "--precisions",
        nargs="+",
        choices=["float32", "bfloat16"],
        help="of the matrix products; by default those of the processor",
    )
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    add("--fills", nargs="+", type=float, default=[0.75, 1.0], metavar="SHARE")
    add("--repetitions", type=int, default=5, help="runs of each system")
    add("--steps", type=int, default=3, help="updates per run")
    add("--threads", type=int, default=os.cpu_count(), help="of each library")
    add("--product-width", type=int, default=3072, help="of the large product")
    add("--input-pairs", type=int, default=200_000, help="0 leaves it out")
    path = {"type": pathlib.Path, "metavar": "FILE"}
    add("--output", **path, help="JSON with all that was measured")
    add("--picture", **path, help="PNG, SVG or PDF; needs matplotlib")
    args = parser.parse_args(argv)
    for name in ("repetitions", "steps", "threads", "product_width"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if any(not 0.5 <= fill <= 1 for fill in args.fills):
        parser.error("--fills must be between 0.5 and 1")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    rows, left_out = [], []
    precisions = choose_precisions(args.precisions)
    for size in args.sizes:
        for precision in precisions:
            more, missing = compare(size, precision, args)
            rows += more
            left_out += missing
            print_table(more, missing)
    pipeline = measure_input(args) if args.input_pairs else None
    if pipeline:
        print_input(pipeline)
    if args.output:
        write_json(
            args.output,
            args,
            PACKAGES,
            sizes={name: vars(SIZES[name]) for name in args.sizes},
            rows=rows,
            left_out=left_out,
            input=pipeline,
        )
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    main()
