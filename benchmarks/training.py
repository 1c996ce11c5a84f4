"""Measures training beside other systems: time, memory, share of the peak.

    python -m benchmarks.training
    python -m benchmarks.training --sizes tiny --precisions float32 \\
        --systems package pytorch --repetitions 2 --steps 1

Each system runs in a process of its own, and they take turns, so that what
else the machine does meets all of them. README.md says what is measured.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from benchmarks.report import draw
from benchmarks.report import print_input
from benchmarks.report import print_table
from benchmarks.sizes import SIZES
from benchmarks.worker import SYSTEMS

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = ("keras", "keras-hub", "numpy", "tensorflow", "torch")
# Flags of /proc/cpuinfo that mean products of bfloat16 in hardware.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}


class Worker:
    """A process that holds one system and runs it when told to."""

    def __init__(self, system: str, size: str, precision: str, args):
        self.system = system
        command = [
            *(sys.executable, "-m", "benchmarks.worker"),
            *("--system", system, "--size", size, "--precision", precision),
            *("--steps", str(args.steps), "--fills", *map(str, args.fills)),
            *("--product-width", str(args.product_width)),
        ]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(args.threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self.read()
        self.rounds = []

    def read(self) -> dict:
        """Returns what the worker says next, or why it says nothing more."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"left_out": f"ended with code {self.process.wait()}"}

    def take_turn(self) -> None:
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It has ended: `read` says how.
        answer = self.read()
        if "left_out" in answer:
            self.first = answer
        else:
            self.rounds.append(answer)

    def close(self) -> None:
        self.process.communicate()

    @property
    def left_out(self) -> str | None:
        return self.first.get("left_out")


def environment(threads: int) -> dict[str, str]:
    """Returns the environment in which all workers run."""
    return {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1",  # As `train` sets it.
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }


def compare(size: str, precision: str, args) -> tuple[list[dict], list[dict]]:
    """Runs all systems in turn.

    Returns:
        The rows of the table, and those that are left out with their reasons.
    """
    workers = []
    try:
        for system in args.systems:
            print(f"{size} {precision}: {system} warms up", file=sys.stderr)
            workers.append(Worker(system, size, precision, args))
        for repetition in range(args.repetitions):
            print(
                f"{size} {precision}: repetition {repetition + 1} of "
                f"{args.repetitions}",
                file=sys.stderr,
            )
            # To and fro, so that no system always comes after the same one.
            for worker in workers[:: -1 if repetition % 2 else 1]:
                if not worker.left_out:
                    worker.take_turn()
    finally:
        for worker in workers:
            worker.close()
    common = {"size": size, "precision": precision}
    left_out = [
        {**common, "system": worker.system, "reason": worker.left_out}
        for worker in workers
        if worker.left_out
    ]
    return make_rows([w for w in workers if not w.left_out], common), left_out


def make_rows(workers: list[Worker], common: dict) -> list[dict]:
    """Returns a row for each system and fill, with medians."""
    if not workers:
        return []
    width = 2 * workers[0].first["product_width"] ** 3
    # The peak is that of the library that multiplies fastest.
    peak = width / min(
        statistics.median(r["product"] for r in worker.rounds)
        for worker in workers
    )
    rows = []
    for worker in workers:
        for fill, first in worker.first["fills"].items():
            times = [r["updates"][fill] for r in worker.rounds]
            middle = statistics.median(times)
            rows.append(
                {
                    **common,
                    "system": worker.system,
                    "fill": float(fill),
                    **first,
                    "seconds": middle,
                    "all_seconds": times,
                    "product_seconds": [r["product"] for r in worker.rounds],
                    "tokens_per_second": first["target_tokens"] / middle,
                    "peak_flops": peak,
                    "share_of_peak": first["flops"] / middle / peak,
                }
            )
    return rows


def measure_input(args) -> dict:
    command = [
        *(sys.executable, "-m", "benchmarks.input_pipeline"),
        *("--pairs", str(args.input_pairs), "--batch-tokens", "25000"),
        *("--repetitions", str(args.repetitions)),
    ]
    print("input pipeline", file=sys.stderr)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment(args.threads),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def describe_machine() -> dict:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.date.today().isoformat(),
        "processor": cpu_field("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": versions,
    }


def cpu_field(name: str) -> str:
    """Returns a field of the first processor, or nothing."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


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
    add("--repetitions", type=int, default=5, help="turns of each system")
    add("--steps", type=int, default=3, help="updates a turn")
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
        result = {
            "machine": describe_machine(),
            "arguments": {
                name: str(value) if isinstance(value, pathlib.Path) else value
                for name, value in vars(args).items()
            },
            "sizes": {name: vars(SIZES[name]) for name in args.sizes},
            "rows": rows,
            "left_out": left_out,
            "input": pipeline,
        }
        args.output.write_text(json.dumps(result, indent=2) + "\n")
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    main()
