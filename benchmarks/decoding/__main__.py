"""Measures translation beside other systems: speed, latency, memory.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --sizes check --sentences 8 --repetitions 1
    python -m benchmarks.decoding --run-dir runs/tiny --source F --reference F

Each system runs in its own process. The runs alternate, so that other load on
the machine affects all systems. Models of --sizes have random weights and
decode a given number of tokens; the model of --run-dir ends its translations
itself. README.md describes the measurements.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.decoding.worker import SYSTEMS, TRAINED_MODULES, WARM_UP_CASE
from benchmarks.shared.interleaved_runs import (
    Worker,
    format_spread,
    make_command,
    run_interleaved,
    write_results,
)
from benchmarks.shared.model_sizes import SIZES, STUDENTS
from command_line.markdown import format_table

TRAINED = "trained"  # The model of `--run-dir`.
PACKAGE = "package"
OWN_WEIGHTS = "hugging-face"  # All others have the package's.
# Those that decode students, which have fewer layers in the decoder.
STUDENT_SYSTEMS = [name for name in SYSTEMS if name.startswith(("package", "litert"))]
PERCENTILES = (50, 90, 99)
HEAD = (
    *("model", "batch", "system", "target tokens/s, first time", "again"),
    *("ms at p50, p90, p99, first time", "again", "package is", "the same"),
    "peak GiB",
)


def measure(model: str, args: argparse.Namespace) -> list[dict]:
    """Returns a row for each batch size and system."""
    is_trained = model == TRAINED
    title = model if is_trained else f"{model}, {args.vocabulary_size:,}"
    names = [
        name
        for name in args.systems
        if not is_trained or SYSTEMS[name][0] in TRAINED_MODULES
    ]
    with tempfile.TemporaryDirectory() as folder:
        common = {"folder": folder, "threads": args.threads, "is_trained": is_trained}
        print(f"{title}: makes models and batches", file=sys.stderr)
        inputs = {
            **common,
            **{"size": model, "systems": names, "sentences": args.sentences},
            "vocabulary_size": args.vocabulary_size,
            "batch_sizes": args.batch_sizes,
            "run_dir": args.run_dir.absolute() if is_trained else None,
            "source": args.source and args.source.absolute(),
            "reference": args.reference and args.reference.absolute(),
        }
        done = subprocess.run(**make_command("benchmarks.decoding.inputs", inputs))
        if done.returncode:
            raise SystemExit(done.returncode)  # It has said why.
        cases = json.loads(pathlib.Path(folder, "cases.json").read_text())
        del cases[WARM_UP_CASE]
        # The first repetition shows each batch for the first time.
        workers = run_interleaved(
            *(title, "benchmarks.decoding.worker"),
            systems={name: {**common, "system": name} for name in names},
            orders=cases,
            repetitions=1 + args.repetitions,
        )
    return [
        {"model": title, **row}
        for case, batches in cases.items()
        for row in make_rows(workers, case, batches)
    ]


def make_rows(workers: list[Worker], case: str, batches: list[dict]) -> list[dict]:
    """Returns a row for each system: seconds of the batches in each run."""
    runs = {
        worker.system: [run for run in worker.answers if run["case"] == case]
        for worker in workers
    }
    outputs = {system: of_system[0]["outputs"] for system, of_system in runs.items()}
    return [
        {
            "batch": len(outputs[system]) // len(batches),
            "system": system,
            "tokens": sum(batch["tokens"] for batch in batches),
            "seconds": [run["seconds"] for run in of_system],
            "same_as_package": compare_translations(system, outputs),
            "peak_bytes": of_system[0]["peak_bytes"],
        }
        for system, of_system in runs.items()
    ]


def compare_translations(system: str, outputs: dict[str, list]) -> float | None:
    """Returns the share of the package's translations that a system finds.

    Greedy search is compared with greedy search. The last id of each sentence
    is ignored: the package ends with EOS, other systems with another token.
    """
    wanted = PACKAGE + ("-greedy" if system.endswith("-greedy") else "")
    if system == OWN_WEIGHTS or wanted not in outputs:
        return None
    found, wanted = (
        [output if isinstance(output, str) else output[:-1] for output in of_system]
        for of_system in (outputs[system], outputs[wanted])
    )
    return statistics.mean(a == b for a, b in zip(found, wanted, strict=True))


def find_baseline(system: str) -> str:
    """Returns the package's system with which another system is compared."""
    greedy = system.endswith("-greedy") and not system.startswith(PACKAGE)
    return PACKAGE + "-greedy" if greedy else PACKAGE


def print_rows(rows: list[dict]) -> None:
    """Prints the rows of a model, as Markdown."""
    speeds = {
        (row["batch"], row["system"]): [
            row["tokens"] / sum(run) for run in row["seconds"]
        ]
        for row in rows
    }
    cells = []
    for row in rows:
        first, *again = speeds[row["batch"], row["system"]]
        baseline = speeds.get((row["batch"], find_baseline(row["system"])))
        same = row["same_as_package"]
        latencies = [
            ", ".join(f"{1e3 * ms:,.0f}" for ms in np.percentile(part, PERCENTILES))
            if row["batch"] == 1
            else None
            for part in (row["seconds"][0], row["seconds"][1:])
        ]
        ratio = baseline and statistics.median(baseline[1:]) / statistics.median(again)
        cells.append(
            [
                *(row[name] for name in HEAD[:3]),
                f"{first:,.0f}",
                format_spread(again, ",.0f"),
                *latencies,
                ratio and f"{ratio:.2f} ×",
                None if same is None else f"{same:.0%}",
                f"{row['peak_bytes'] / 2**30:.2f}",
            ]
        )
    print(f"\n{format_table(HEAD, cells)}")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding",
        description="Measures translation beside other systems.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--sizes",
        nargs="*",
        choices=[*SIZES, *STUDENTS],
        default=["base"],
        help="models; check, a toy, is for trying the benchmark itself",
    )
    add("--run-dir", type=pathlib.Path, help="of a trained model, beside them")
    add("--vocabulary-size", type=int, default=8_000, help="of these models")
    add(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        metavar="SYSTEM",
        help=f"what is measured, of {', '.join(SYSTEMS)}",
    )
    sizes = {"type": int, "nargs": "+", "default": [1, 32]}
    add("--batch-sizes", **sizes, help="sentences of a batch")
    add("--sentences", type=int, default=64, help="of each batch size, about")
    add("--repetitions", type=int, default=5, help="runs after the first")
    add("--threads", type=int, default=os.cpu_count(), help="of each library")
    path = {"type": pathlib.Path, "metavar": "FILE"}
    add("--source", **path, help="sentences; by default the demo corpus")
    add("--reference", **path, help="their translations")
    add("--output", **path, help="JSON with every single time")
    args = parser.parse_args(argv)
    check(parser, args)
    return args


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses options that cannot be measured."""
    counts = "vocabulary_size", "sentences", "repetitions", "threads", "batch_sizes"
    for name in counts:
        if np.min(getattr(args, name)) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if bool(args.source) != bool(args.reference):
        parser.error("--source and --reference must come together")
    other = [name for name in args.systems if name not in STUDENT_SYSTEMS]
    if other and set(STUDENTS) & {*args.sizes}:
        parser.error(
            f"{', '.join(STUDENTS)} must come with --systems of "
            f"{', '.join(STUDENT_SYSTEMS)}. Received: {', '.join(other)}"
        )
    if not args.sizes and not args.run_dir:
        parser.error("--sizes must name a model where there is no --run-dir")


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    rows = []
    for model in [*([TRAINED] if args.run_dir else []), *args.sizes]:
        rows += (more := measure(model, args))
        print_rows(more)
    write_results(args.output, args, rows)


if __name__ == "__main__":
    main()
