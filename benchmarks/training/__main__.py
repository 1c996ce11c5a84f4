"""Measures training beside other systems: time and memory.

    python -m benchmarks.training
    python -m benchmarks.training --sizes tiny --precisions float32 \\
        --systems package pytorch --repetitions 2 --steps 1

README.md describes the measurements.
"""

import argparse
import statistics

from benchmarks.constants import SIZES
from benchmarks.interleaved_runs import (
    Measured,
    format_spread,
    list_threads,
    run_interleaved,
)
from benchmarks.machine import cpu_field
from benchmarks.training.worker import FILLS, PROBE, SYSTEMS
from command_line.markdown import format_table

# Flags of /proc/cpuinfo that mean products of bfloat16 in hardware.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}
HEAD = (
    *("size", "precision", "fill", "system", "threads", "s an update"),
    *("target tokens/s", "package is", "peak GiB"),
)


def compare(size: str, precision: str, args: argparse.Namespace) -> dict[str, Measured]:
    """Runs all systems in turn; returns what they answer, by system and order."""
    common = {"size": size, "precision": precision, "steps": args.steps}
    candidates = {
        system: ({**common, "system": system}, list_threads())
        for system in args.systems
    }
    return run_interleaved(
        *(f"{size} {precision}", "benchmarks.training.worker"),
        systems=candidates,
        probe=PROBE,
        orders=FILLS,
        repetitions=args.repetitions,
    )


def median_seconds(runs: list[dict]) -> float:
    return statistics.median(run["seconds"] for run in runs)


def print_answers(size: str, precision: str, found: dict[str, Measured]) -> None:
    """Prints what the systems answered, as Markdown."""
    if not found:
        return
    answers = {system: measured.answers for system, measured in found.items()}
    cells = []
    for fill in FILLS:
        for system, runs in answers.items():
            seconds, first = median_seconds(runs[fill]), runs[fill][0]
            gain = None
            if "package" in answers and system != "package":
                gain = f"{seconds / median_seconds(answers['package'][fill]):.2f} ×"
            cells.append(
                [
                    *(size, precision, fill, system, found[system].threads.threads),
                    format_spread([run["seconds"] for run in runs[fill]], ".3f"),
                    f"{first['target_tokens'] / seconds:,.0f}",
                    gain,
                    f"{first['peak_bytes'] / 2**30:.2f}",
                ]
            )
    print(f"\n{format_table(HEAD, cells)}")


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
    flags = set(f"{cpu_field('flags')} {cpu_field('Features')}".split())
    add(
        "--precisions",
        nargs="+",
        choices=["float32", "bfloat16"],
        default=["float32", *(["bfloat16"] if flags & BFLOAT16_FLAGS else [])],
        help="of the matrix products; by default those of the processor",
    )
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    add("--repetitions", type=int, default=5, help="runs of each system")
    add("--steps", type=int, default=3, help="updates per run")
    args = parser.parse_args(argv)
    for name in ("repetitions", "steps"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    for size in args.sizes:
        for precision in args.precisions:
            print_answers(size, precision, compare(size, precision, args))


if __name__ == "__main__":
    main()
