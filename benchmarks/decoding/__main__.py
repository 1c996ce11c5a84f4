"""Measures translation beside other systems: speed, latency, memory.

    python -m benchmarks.decoding --output decoding.json --picture decoding.png
    python -m benchmarks.decoding --sizes check --sentences 8 --repetitions 1
    python -m benchmarks.decoding --run-dir runs/tiny --source F --reference F

Each system runs in its own process. The runs alternate, so that other load on
the machine affects all systems. Models of --sizes have random weights and
decode a given number of tokens; the model of --run-dir ends its translations
itself. README.md describes the measurements.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.decoding.report import (
    compare_translations,
    draw,
    fit_curves,
    make_row,
    print_curves,
    print_table,
)
from benchmarks.decoding.worker import SYSTEMS, TRAINED_SYSTEMS, WARM_UP_CASE
from benchmarks.shared.interleaved_runs import (
    ROOT,
    list_failures,
    make_environment,
    run_interleaved,
    write_json,
)
from benchmarks.shared.model_sizes import DECODED_SIZES, STUDENTS, TRAINED

PACKAGES = (
    *("ai-edge-litert", "ctranslate2", "keras", "keras-hub", "numpy", "sentencepiece"),
    *("tensorflow", "tensorflow-text", "torch", "transformers"),
)
# Those that decode students, which have fewer layers in the decoder.
STUDENT_SYSTEMS = [name for name in SYSTEMS if name.startswith(("package", "litert"))]


def prepare(
    model: str, systems: list[str], args, folder: pathlib.Path
) -> dict[str, list[dict]]:
    """Writes models and batches to a folder; returns the batches by case."""
    command = [
        *("--folder", folder, "--systems", *systems),
        *(
            ("--run-dir", args.run_dir.absolute())
            if model == TRAINED
            else ("--size", model)
        ),
        *("--vocabulary-size", args.vocabulary_size),
        *("--sentences", args.sentences),
        *("--batch-sizes", *args.batch_sizes),
        *("--curve-lengths", *args.curve_lengths),
        *("--curve-batch-sizes", *args.curve_batch_sizes),
    ]
    if args.source:
        command += ["--source", args.source.absolute()]
        command += ["--reference", args.reference.absolute()]
    print(f"{title(model, args)}: makes models and batches", file=sys.stderr)
    done = subprocess.run(
        [*(sys.executable, "-m", "benchmarks.decoding.inputs"), *map(str, command)],
        cwd=ROOT,
        env=make_environment(args.threads),
    )
    if done.returncode:
        raise SystemExit(done.returncode)  # It has said why.
    cases = json.loads((folder / "cases.json").read_text())
    del cases[WARM_UP_CASE]
    return cases


def compare(
    model: str,
    systems: list[str],
    batches: dict[str, list[dict]],
    args,
    folder: pathlib.Path,
) -> tuple[list[dict], list[dict]]:
    """Measures all systems on the batches of some cases, in alternation.

    Returns:
        A row for each system and case, and a row with the reason for each
        system that failed.
    """
    commands = {
        system: [
            *("benchmarks.decoding.worker", "--system", system),
            *("--folder", str(folder)),
            *(["--trained"] if model == TRAINED else []),
        ]
        for system in systems
    }
    # The first repetition shows each batch for the first time.
    workers = run_interleaved(
        title(model, args), commands, batches, 1 + args.repetitions, args.threads
    )
    rows = []
    for case, of_case in batches.items():
        same = compare_translations(workers, case)
        rows += [
            {
                "model": title(model, args),
                **make_row(worker, case, of_case),
                "same_as_package": same.get(worker.system),
            }
            for worker in workers
            if not worker.left_out
        ]
    return rows, list_failures(workers, {"model": title(model, args)})


def title(model: str, args) -> str:
    return model if model == TRAINED else f"{model}, {args.vocabulary_size:,}"


def measure(model: str, args) -> tuple[list[dict], list[dict], list[dict]]:
    """Returns the rows of the table, those of the curves, and the failures."""
    known = TRAINED_SYSTEMS if model == TRAINED else SYSTEMS
    systems = [system for system in args.systems if system in known]
    of_curves = [system for system in args.curve_systems if system in systems]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = prepare(model, systems, args, folder)
        table, points = {}, {}
        for case, batches in cases.items():
            (table if case.startswith("batch") else points)[case] = batches
        rows, left_out = compare(model, systems, table, args, folder)
        curves = []
        if points and of_curves:
            curves, _ = compare(model, of_curves, points, args, folder)
    return rows, curves, left_out


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
        choices=DECODED_SIZES,
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
    add(
        "--batch-sizes",
        type=int,
        nargs="+",
        default=[1, 32],
        help="sentences of a batch",
    )
    add("--sentences", type=int, default=64, help="of each batch size, about")
    add("--repetitions", type=int, default=5, help="runs after the first")
    add("--threads", type=int, default=os.cpu_count(), help="of each library")
    add(
        "--curve-systems",
        nargs="*",
        choices=SYSTEMS,
        default=["package", "ctranslate2"],
        metavar="SYSTEM",
        help="whose cost is drawn against lengths and batch sizes",
    )
    lengths = [8, 16, 32, 64, 128]
    add(
        "--curve-lengths",
        type=int,
        nargs="+",
        default=lengths,
        help="target tokens of a sentence",
    )
    sizes = [1, 2, 4, 8, 16, 32, 64]
    add(
        "--curve-batch-sizes",
        type=int,
        nargs="+",
        default=sizes,
        help="sentences of a batch of the curves",
    )
    path = {"type": pathlib.Path, "metavar": "FILE"}
    add("--source", **path, help="sentences; by default the demo corpus")
    add("--reference", **path, help="their translations")
    add("--output", **path, help="JSON with all that was measured")
    add("--picture", **path, help="PNG, SVG or PDF; needs matplotlib")
    args = parser.parse_args(argv)
    check(parser, args)
    return args


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses options that cannot be measured."""
    for name in (
        *("vocabulary_size", "sentences", "repetitions", "threads"),
        *("batch_sizes", "curve_lengths", "curve_batch_sizes"),
    ):
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
    rows, curves, fits, left_out = [], [], [], []
    for model in [*([TRAINED] if args.run_dir else []), *args.sizes]:
        more, points, missing = measure(model, args)
        print_table(more, missing)
        rows += more
        curves += points
        left_out += missing
        if points:
            size = dataclasses.replace(
                DECODED_SIZES[model], vocabulary_size=args.vocabulary_size
            )
            slopes = fit_curves(points, size)
            print_curves(title(model, args), slopes)
            fits += [{"model": title(model, args), **fit} for fit in slopes]
    if args.output:
        write_json(
            args.output,
            args,
            PACKAGES,
            rows=rows,
            curves=curves,
            fits=fits,
            left_out=left_out,
        )
    if args.picture:
        draw(rows, curves, args.picture)


if __name__ == "__main__":
    main()
