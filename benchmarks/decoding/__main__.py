"""Measures translation beside other systems: speed, latency, memory.

    python -m benchmarks.decoding
    python -m benchmarks.decoding --sizes check --sentences 8 --repetitions 1
    python -m benchmarks.decoding --run-dir runs/tiny --source F --reference F
    python -m benchmarks.decoding --export-dir exports/a exports/b --source F

README.md describes the measurements.
"""

import argparse
import json
import operator
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable

import numpy as np

from benchmarks.constants import SIZES, STUDENTS
from benchmarks.decoding import systems
from benchmarks.decoding.systems import SYSTEMS
from benchmarks.interleaved_runs import (
    Measured,
    format_spread,
    list_threads,
    make_popen_arguments,
    run_interleaved,
)
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
        firefox = {"firefox": (systems.load_firefox, args.firefox)}
        exports = {str(path): systems.find_export(path) for path in args.export_dir}
        return (firefox if args.firefox else {}) | exports
    return {
        name: (load, None, *setting)
        for name, (load, *setting) in SYSTEMS.items()
        if name in args.systems and name.startswith(RESTRICTED.get(model, ""))
    }


def measure(model: str, args: argparse.Namespace) -> list[list]:
    """Returns the cells of a row for each batch size and system."""
    title = f"{model}, {args.vocabulary_size:,}" if model in SIZES else model
    compared = list_systems(model, args)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(f"{title}: makes models and batches", file=sys.stderr)
        make_inputs(folder, model, list(compared), args)
        path = folder / "cases.json"
        cases = json.loads(path.read_text())
        rows = []
        for batch_size in args.batch_sizes:
            case = f"batch {batch_size}"
            candidates = {}
            for system, (load, given, *setting) in compared.items():
                has_threads = load not in systems.ONE_THREAD
                options = {"load": load.__name__, "cases": path, "setting": setting}
                options["folder"] = (given or folder).absolute()
                candidates[system] = options, list_threads(batch_size, has_threads)
            found = run_interleaved(
                *(f"{title}, {case}", "benchmarks.decoding.worker"),
                systems=candidates,
                probe=f"probe {batch_size}",
                orders=[case],
                repetitions=1 + args.repetitions,  # The first is a warm-up.
            )
            rows += make_rows(title, batch_size, cases[case], found)
    return rows


def make_inputs(
    folder: pathlib.Path, model: str, compared: list[str], args: argparse.Namespace
) -> None:
    """Writes models and cases, in a process of its own."""
    options = {
        **{"folder": folder, "threads": list_threads()[-1], "systems": compared},
        "model": None if model == EXPORTS else model,
        "run_dir": args.run_dir.absolute() if model == TRAINED else None,
        **{"sentences": args.sentences, "batch_sizes": args.batch_sizes},
        "vocabulary_size": args.vocabulary_size,
        "source": args.source and args.source.absolute(),
        "reference": args.reference and args.reference.absolute(),
    }
    done = subprocess.run(**make_popen_arguments("benchmarks.decoding.inputs", options))
    if done.returncode:
        raise SystemExit(done.returncode)  # It has said why.


def make_rows(
    model: str, batch_size: int, batches: list[dict], found: dict[str, Measured]
) -> list[list]:
    """Returns the cells of each system, of what it answered after the first run."""
    count = sum(batch["count"] for batch in batches)
    case = f"batch {batch_size}"
    runs = {system: measured.answers[case][1:] for system, measured in found.items()}
    speeds = {
        system: [count / sum(run["seconds"]) for run in again]
        for system, again in runs.items()
    }
    outputs = {system: again[0]["outputs"] for system, again in runs.items()}
    rows = []
    for system, again in runs.items():
        rival = PACKAGE if system == GREEDY else find_baseline(system, found)
        gain = None
        if rival in found:
            medians = (statistics.median(speeds[each]) for each in (rival, system))
            gain = f"{operator.truediv(*medians):.2f} ×"
        rows.append(
            [
                *(model, batch_size, system, found[system].threads),
                format_spread(speeds[system], ",.0f"),
                format_latencies(again) if batch_size == 1 else None,
                f"{again[0]['start_seconds']:.1f}",
                *(gain, compare_translations(system, outputs)),
                f"{again[0]['peak_bytes'] / 2**30:.2f}",
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
    return ", ".join(f"{value:,.1f}" for value in milliseconds)


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
    add("--repetitions", type=int, default=5, help="runs of each system")
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
        for path in args.export_dir:
            if systems.find_export(path) is None:
                parser.error(
                    "--export-dir must be SavedModels or exports for LiteRT. "
                    f"Received: {path}"
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
            *("model", "batch", "system", "workers × threads", unit),
            *("ms at p50, p90, p99", "s to start", f"{rival} is", "the same"),
            "peak GiB",
        )
        print(f"\n{format_table(head, measure(model, args))}")


if __name__ == "__main__":
    main()
