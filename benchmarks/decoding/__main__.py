"""Measures translation beside other systems: speed, latency, memory.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --sizes check --sentences 8 --repetitions 1
    python -m benchmarks.decoding --run-dir runs/tiny --source F --reference F
    python -m benchmarks.decoding --export-dir exports/a exports/b --source F

Each system runs in its own process. The runs alternate, so that other load on
the machine affects all systems. Models of --sizes have random weights and
decode a given number of tokens; the model of --run-dir ends its translations
itself; exports take and return text. README.md describes the measurements.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import numpy as np

from benchmarks.decoding.systems import SYSTEMS
from benchmarks.decoding.worker import WARM_UP_CASE
from benchmarks.interleaved_runs import format_spread, make_command, run_interleaved
from benchmarks.model_sizes import SIZES, STUDENTS
from command_line.cpu_count import count_processors
from command_line.markdown import format_table

TRAINED = "trained"  # The model of `--run-dir`.
EXPORTS = "exports"  # Those of `--export-dir`, and the model of `--firefox`.
PACKAGE, GREEDY = "package", "package-greedy"
# The systems of a model by the beginnings of their names, where not all decode it.
RESTRICTED = {
    TRAINED: (PACKAGE, "ctranslate2", "litert"),
    **dict.fromkeys(STUDENTS, (PACKAGE, "litert")),
}
OWN_WEIGHTS = "hugging-face"  # All others have the package's.
PERCENTILES = (50, 90, 99)


def list_systems(model: str, args: argparse.Namespace) -> dict[str, tuple]:
    """Returns function, folder, beams and precision of the systems of a model."""
    if model == EXPORTS:
        firefox = {"firefox": ("load_firefox", args.firefox)} if args.firefox else {}
        exports = {str(path): ("load_export", path) for path in args.export_dir}
        return firefox | exports
    return {
        name: (load.__name__, None, *setting)
        for name, (load, *setting) in SYSTEMS.items()
        if name in args.systems and name.startswith(RESTRICTED.get(model, ""))
    }


def measure(model: str, args: argparse.Namespace) -> list[list]:
    """Returns the cells of a row for each batch size and system."""
    title = f"{model}, {args.vocabulary_size:,}" if model in SIZES else model
    systems = list_systems(model, args)
    threads = count_processors()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{title}: makes models and batches", file=sys.stderr)
        inputs = {
            **{"folder": folder, "threads": threads, "systems": list(systems)},
            "model": None if model == EXPORTS else model,
            "run_dir": args.run_dir.absolute() if model == TRAINED else None,
            **{"sentences": args.sentences, "batch_sizes": args.batch_sizes},
            "vocabulary_size": args.vocabulary_size,
            "source": args.source and args.source.absolute(),
            "reference": args.reference and args.reference.absolute(),
        }
        done = subprocess.run(**make_command("benchmarks.decoding.inputs", inputs))
        if done.returncode:
            raise SystemExit(done.returncode)  # It has said why.
        path = pathlib.Path(folder, "cases.json")
        cases = json.loads(path.read_text())
        del cases[WARM_UP_CASE]
        # The first repetition shows each batch for the first time.
        answers = run_interleaved(
            *(title, "benchmarks.decoding.worker"),
            systems={
                name: {
                    **{"load": load, "cases": path, "threads": threads},
                    "folder": (given or pathlib.Path(folder)).absolute(),
                    "setting": [threads, *setting],
                }
                for name, (load, given, *setting) in systems.items()
            },
            orders=cases,
            repetitions=1 + args.repetitions,
        )
    return [
        row
        for case, batches in cases.items()
        for row in make_rows(
            title, batches, {name: found[case] for name, found in answers.items()}
        )
    ]


def make_rows(
    model: str, batches: list[dict], answers: dict[str, list[dict]]
) -> list[list]:
    """Returns the cells of each system, of what it answered in each run."""
    count = sum(batch["count"] for batch in batches)
    speeds = {
        system: [count / sum(run["seconds"]) for run in runs]
        for system, runs in answers.items()
    }
    medians = {
        system: statistics.median(again) for system, (_, *again) in speeds.items()
    }
    outputs = {system: runs[0]["outputs"] for system, runs in answers.items()}
    rows = []
    for system, runs in answers.items():
        first, *again = speeds[system]
        rival = PACKAGE if system == GREEDY else find_baseline(system, answers)
        size = len(outputs[system]) // len(batches)
        parts = (runs[:1], runs[1:]) if size == 1 else (None, None)
        rows.append(
            [
                *(model, size, system, f"{first:,.0f}", format_spread(again, ",.0f")),
                *(part and format_latencies(part) for part in parts),
                f"{medians[rival] / medians[system]:.2f} ×"
                if rival in medians
                else None,
                compare_translations(system, outputs),
                f"{runs[0]['peak_bytes'] / 2**30:.2f}",
            ]
        )
    return rows


def find_baseline(system: str, systems: Iterable[str]) -> str:
    """Returns the system with which another one is compared.

    That is this package's, greedy for greedy, or the first of exports.
    """
    if system not in SYSTEMS:
        return next(iter(systems))
    return GREEDY if system.endswith("-greedy") else PACKAGE


def compare_translations(system: str, outputs: dict[str, list]) -> str | None:
    """Returns the share of the baseline's translations that a system finds."""
    baseline = find_baseline(system, outputs)
    if system == OWN_WEIGHTS or baseline not in outputs:
        return None
    pairs = zip(outputs[system], outputs[baseline], strict=True)
    return f"{statistics.mean(found == wanted for found, wanted in pairs):.0%}"


def format_latencies(runs: list[dict]) -> str:
    """Returns percentiles of the batches' milliseconds."""
    seconds = [run["seconds"] for run in runs]
    milliseconds = 1e3 * np.percentile(seconds, PERCENTILES)
    return ", ".join(f"{value:,.0f}" for value in milliseconds)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding",
        description="Measures translation beside other systems.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    path = {"type": pathlib.Path, "metavar": "PATH"}
    sizes = "models; check, a toy, is for trying the benchmark itself"
    choices = [*SIZES, *STUDENTS]
    add("--sizes", nargs="*", choices=choices, help=f"{sizes} (default: base)")
    add("--run-dir", **path, help="a trained model, instead of these or beside them")
    add("--export-dir", **path, nargs="+", default=[], help="exports of one model")
    add("--firefox", **path, help="folder of Firefox's model, beside the exports")
    add("--vocabulary-size", type=int, default=8_000, help="of --sizes")
    add(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        metavar="SYSTEM",
        help=f"what is measured, of {', '.join(SYSTEMS)}",
    )
    counts = {"type": int, "nargs": "+", "default": [1, 32]}
    add("--batch-sizes", **counts, help="sentences of a batch")
    add("--sentences", type=int, default=64, help="of each batch size, about")
    add("--repetitions", type=int, default=5, help="runs after the first")
    add("--source", **path, help="sentences (default: those of the demo corpus)")
    add("--reference", **path, help="their translations, except with --export-dir")
    args = parser.parse_args(argv)
    check(parser, args)
    return args


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses options that cannot be measured."""
    for name in ("vocabulary_size", "sentences", "repetitions", "batch_sizes"):
        if np.min(getattr(args, name)) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if args.export_dir:
        if args.sizes or args.run_dir or not args.source:
            parser.error(
                "--export-dir must come with --source, without --sizes and --run-dir"
            )
    elif bool(args.source) != bool(args.reference):
        parser.error("--source and --reference must come together")


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    models = [TRAINED] if args.run_dir else []
    models += ["base"] if args.sizes is None and not models else args.sizes or []
    for model in [EXPORTS] if args.export_dir else models:
        unit, rival = "target tokens/s", PACKAGE
        if model == EXPORTS:
            unit, rival = "sentences/s", "the first"
        head = (
            *("model", "batch", "system", f"{unit}, first time", "again"),
            *("ms at p50, p90, p99, first time", "again", f"{rival} is"),
            *("the same", "peak GiB"),
        )
        print(f"\n{format_table(head, measure(model, args))}")


if __name__ == "__main__":
    main()
