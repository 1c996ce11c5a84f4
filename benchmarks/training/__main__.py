"""Measures training beside other systems: time, memory, share of peak FLOPs.

    python -m benchmarks.training
    python -m benchmarks.training --sizes tiny --precisions float32 \\
        --systems package pytorch --repetitions 2 --steps 1

Each system runs in its own process. The runs alternate, so that other load on
the machine affects all systems. README.md says what is measured.
"""

import argparse
import os
import pathlib
import statistics

from benchmarks.shared.interleaved_runs import (
    cpu_field,
    format_spread,
    run_interleaved,
    write_results,
)
from benchmarks.shared.model_sizes import SIZES
from benchmarks.training.worker import FILLS, PRODUCT_WIDTH, SYSTEMS
from command_line.markdown import format_table

PACKAGE = "package"
# Flags of /proc/cpuinfo that mean products of bfloat16 in hardware.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}
HEAD = (
    *("size", "precision", "fill", "system", "s an update", "target tokens/s"),
    *("package is", "peak GiB", "of matmul peak"),
)


def compare(size: str, precision: str, args: argparse.Namespace) -> list[dict]:
    """Runs all systems in turn; returns a row for each fill and system."""
    common = {"size": size, "precision": precision}
    options = {**common, "threads": args.threads, "steps": args.steps}
    systems = {system: {**options, "system": system} for system in args.systems}
    workers = run_interleaved(
        *(f"{size} {precision}", "benchmarks.training.worker", systems),
        orders=[""],
        repetitions=args.repetitions,
    )
    return [
        {
            **common,
            "fill": fill,
            "system": worker.system,
            **worker.first["fills"][str(fill)],
            "seconds": [answer["updates"][str(fill)] for answer in worker.answers],
            "product_seconds": [answer["product"] for answer in worker.answers],
        }
        for fill in FILLS
        for worker in workers
    ]


def print_rows(rows: list[dict]) -> None:
    """Prints the rows of a size and precision, as Markdown."""
    if not rows:
        return
    # The peak is that of the library that multiplies fastest.
    product = min(statistics.median(row["product_seconds"]) for row in rows)
    peak = 2 * PRODUCT_WIDTH**3 / product
    speeds = {
        (row["system"], row["fill"]): row["target_tokens"]
        / statistics.median(row["seconds"])
        for row in rows
    }
    cells = []
    for row in rows:
        speed = speeds[row["system"], row["fill"]]
        package = speeds.get((PACKAGE, row["fill"]))
        is_rival = package and row["system"] != PACKAGE
        share = row["flops"] / statistics.median(row["seconds"]) / peak
        cells.append(
            [
                *(row[name] for name in HEAD[:4]),
                format_spread(row["seconds"], ".3f"),
                f"{speed:,.0f}",
                f"{package / speed:.2f} ×" if is_rival else None,
                f"{row['peak_bytes'] / 2**30:.2f}",
                f"{share:.0%}",
            ]
        )
    print(f"\n{format_table(HEAD, cells)}\n\nmatmul peak: {peak / 1e9:,.0f} GFLOP/s")


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
    add("--repetitions", type=int, default=5, help="runs of each system")
    add("--steps", type=int, default=3, help="updates per run")
    add("--threads", type=int, default=os.cpu_count(), help="of each library")
    add("--output", type=pathlib.Path, help="JSON with every single time")
    args = parser.parse_args(argv)
    for name in ("repetitions", "steps", "threads"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    rows = []
    precisions = choose_precisions(args.precisions)
    for size in args.sizes:
        for precision in precisions:
            rows += (more := compare(size, precision, args))
            print_rows(more)
    write_results(args.output, args, rows)


if __name__ == "__main__":
    main()
