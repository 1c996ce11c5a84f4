"""Runs one system of `benchmarks.decoding` in a process of its own, on demand.

Reads the names of cases from standard input. At first it decodes every batch
once and writes a line of JSON with the peak of its memory after each case, or
why there will be no more lines. Then it writes the seconds of each batch of
the case that it is told.
"""

import argparse
import contextlib
import importlib
import json
import pathlib
import sys
import time

from benchmarks.shared.child import peak_memory
from benchmarks.shared.child import tell

PACKAGE = "package"
CTRANSLATE2 = "ctranslate2"
# System: module, function that makes it, and what is special about it. The
# function made takes a batch and returns the ids of each of its translations.
SYSTEMS = {
    "package": (PACKAGE, "make", {}),
    "package-bfloat16": (PACKAGE, "make", {"precision": "bfloat16"}),
    "package-greedy": (PACKAGE, "make", {"beam_size": 1}),
    "ctranslate2": (CTRANSLATE2, "make", {}),
    "ctranslate2-int8": (CTRANSLATE2, "make", {"compute_type": "int8"}),
    "ctranslate2-greedy": (CTRANSLATE2, "make", {"beam_size": 1}),
    "hugging-face": ("hugging_face", "make", {}),
    "keras-hub": ("keras_hub", "make", {}),
}
# The same with a trained model and text; here it returns texts.
TRAINED_SYSTEMS = {
    "package": (PACKAGE, "make_served", {"export": "package"}),
    "package-bfloat16": (
        PACKAGE,
        "make_served",
        {"export": "package-bfloat16"},
    ),
    "package-greedy": (
        PACKAGE,
        "make_served",
        {"export": "package", "greedy": True},
    ),
    "ctranslate2": (CTRANSLATE2, "make_trained", {}),
    "ctranslate2-int8": (CTRANSLATE2, "make_trained", {"compute_type": "int8"}),
    "ctranslate2-greedy": (CTRANSLATE2, "make_trained", {"beam_size": 1}),
}


class WrongWorkError(Exception):
    """A system has decoded another number of tokens than it was told."""


def warm_up(translate, batches: list[dict]) -> list:
    """Decodes every batch once; returns the translations in order."""
    outputs = []
    for batch in batches:
        found = translate(batch)
        for ids in found:
            if "length" in batch and len(ids) != batch["length"]:
                raise WrongWorkError(
                    f"decoded {len(ids)} tokens instead of {batch['length']}"
                )
        outputs += found
    return outputs


def time_batches(translate, batches: list[dict]) -> list[float]:
    """Returns the seconds of each batch."""
    seconds = []
    for batch in batches:
        started = time.perf_counter()
        translate(batch)
        seconds.append(time.perf_counter() - started)
    return seconds


def run(args: argparse.Namespace) -> None:
    systems = TRAINED_SYSTEMS if args.trained else SYSTEMS
    module_name, make, options = systems[args.system]
    module = importlib.import_module(f"benchmarks.decoding.{module_name}")
    translate = getattr(module, make)(args.folder, **options)
    cases = json.loads((args.folder / "cases.json").read_text())
    first = {}
    for name in args.cases:
        outputs = warm_up(translate, cases[name])
        first[name] = {"outputs": outputs, "peak_bytes": peak_memory()}
    tell(first)
    for line in sys.stdin:
        name = line.rstrip("\n")
        seconds = time_batches(translate, cases[name])
        tell({"case": name, "seconds": seconds})


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding.worker"
    )
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--trained", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--cases", nargs="+")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run(args)
    except (ImportError, WrongWorkError) as error:
        tell({"left_out": str(error)})


if __name__ == "__main__":
    main()
