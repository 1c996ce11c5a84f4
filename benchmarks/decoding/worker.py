"""Worker process that runs one system of `benchmarks.decoding` on request.

First it decodes a few short sentences, so that libraries are started and
functions traced, and writes an empty line of JSON. Then it reads the names of
cases from standard input, decodes their batches, and writes outputs and times.
A line may also give the reason why the worker ends.
"""

import argparse
import contextlib
import importlib
import json
import pathlib
import sys
import time

from benchmarks.shared.model_sizes import BEAM_SIZE
from benchmarks.shared.worker_reporting import peak_memory
from benchmarks.shared.worker_reporting import report

WARM_UP_CASE = "warm-up"  # The case that is not timed.
PACKAGE_MODULE = "package"
CTRANSLATE2_MODULE = "ctranslate2"
# Beams and precision of the exports for LiteRT.
LITERT = {
    "litert": (BEAM_SIZE, "float32"),
    "litert-int8": (BEAM_SIZE, "int8"),
    "litert-greedy": (1, "float32"),
    "litert-int8-greedy": (1, "int8"),
}
# System: module, function that makes it, and what is special about it. The
# function made takes a batch and returns the ids of each of its translations.
SYSTEMS = {
    "package": (PACKAGE_MODULE, "make", {}),
    "package-bfloat16": (PACKAGE_MODULE, "make", {"precision": "bfloat16"}),
    "package-greedy": (PACKAGE_MODULE, "make", {"beam_size": 1}),
    "ctranslate2": (CTRANSLATE2_MODULE, "make", {}),
    "ctranslate2-int8": (CTRANSLATE2_MODULE, "make", {"compute_type": "int8"}),
    "ctranslate2-greedy": (CTRANSLATE2_MODULE, "make", {"beam_size": 1}),
    "ctranslate2-int8-greedy": (
        CTRANSLATE2_MODULE,
        "make",
        {"beam_size": 1, "compute_type": "int8"},
    ),
    **{name: ("litert", "make", {"export": name}) for name in LITERT},
    "hugging-face": ("hugging_face", "make", {}),
    "keras-hub": ("keras_hub", "make", {}),
}
# The same with a trained model and text; here it returns texts.
TRAINED_SYSTEMS = {
    "package": (PACKAGE_MODULE, "make_served", {"export": "package"}),
    "package-bfloat16": (
        PACKAGE_MODULE,
        "make_served",
        {"export": "package-bfloat16"},
    ),
    "package-greedy": (
        PACKAGE_MODULE,
        "make_served",
        {"export": "package", "greedy": True},
    ),
    "ctranslate2": (CTRANSLATE2_MODULE, "make_trained", {}),
    "ctranslate2-int8": (
        CTRANSLATE2_MODULE,
        "make_trained",
        {"compute_type": "int8"},
    ),
    "ctranslate2-greedy": (
        CTRANSLATE2_MODULE,
        "make_trained",
        {"beam_size": 1},
    ),
    "ctranslate2-int8-greedy": (
        CTRANSLATE2_MODULE,
        "make_trained",
        {"beam_size": 1, "compute_type": "int8"},
    ),
    **{name: ("litert", "make_trained", {"export": name}) for name in LITERT},
}


class WrongLengthError(Exception):
    """A system has decoded a wrong number of tokens."""


def decode(translate, batches: list[dict]) -> dict[str, list]:
    """Returns the seconds of each batch, and all translations in order."""
    seconds, outputs = [], []
    for batch in batches:
        started = time.perf_counter()
        found = translate(batch)
        seconds.append(time.perf_counter() - started)
        for ids in found:
            if "length" in batch and len(ids) != batch["length"]:
                raise WrongLengthError(
                    f"decoded {len(ids)} tokens instead of {batch['length']}"
                )
        outputs += found
    return {"seconds": seconds, "outputs": outputs}


def run(args: argparse.Namespace) -> None:
    systems = TRAINED_SYSTEMS if args.trained else SYSTEMS
    module_name, make, options = systems[args.system]
    module = importlib.import_module(f"benchmarks.decoding.{module_name}")
    translate = getattr(module, make)(args.folder, **options)
    cases = json.loads((args.folder / "cases.json").read_text())
    decode(translate, cases.pop(WARM_UP_CASE))
    report({})
    for line in sys.stdin:
        name = line.rstrip("\n")
        found = decode(translate, cases[name])
        report({"case": name, "peak_bytes": peak_memory(), **found})


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding.worker"
    )
    parser.add_argument("--system", choices=SYSTEMS)
    parser.add_argument("--trained", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run(args)
    except (ImportError, WrongLengthError) as error:
        report({"left_out": str(error)})


if __name__ == "__main__":
    main()
