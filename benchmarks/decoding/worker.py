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
from benchmarks.shared.worker_reporting import peak_memory, report

WARM_UP_CASE = "warm-up"  # The case that is not timed.
# Beams and precision of the exports for LiteRT.
LITERT = {
    "litert": (BEAM_SIZE, "float32"),
    "litert-int8": (BEAM_SIZE, "int8"),
    "litert-greedy": (1, "float32"),
    "litert-int8-greedy": (1, "int8"),
}
# System: module, and arguments of its `make`, which returns a function from a
# batch to the ids of each of its translations.
SYSTEMS = {
    "package": ("package", {}),
    "package-bfloat16": ("package", {"precision": "bfloat16"}),
    "package-greedy": ("package", {"beam_size": 1}),
    "ctranslate2": ("ctranslate2", {}),
    "ctranslate2-int8": ("ctranslate2", {"compute_type": "int8"}),
    "ctranslate2-greedy": ("ctranslate2", {"beam_size": 1}),
    "ctranslate2-int8-greedy": (
        "ctranslate2",
        {"beam_size": 1, "compute_type": "int8"},
    ),
    **{name: ("litert", {"export": name}) for name in LITERT},
    "hugging-face": ("hugging_face", {}),
    "keras-hub": ("keras_hub", {}),
}
# The same of `make_trained`, with a trained model and text; here the function
# returns texts.
TRAINED_SYSTEMS = {
    "package": ("package", {"export": "package"}),
    "package-bfloat16": ("package", {"export": "package-bfloat16"}),
    "package-greedy": ("package", {"export": "package", "greedy": True}),
    **{
        name: system
        for name, system in SYSTEMS.items()
        if system[0] in ("ctranslate2", "litert")
    },
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
    systems, make = SYSTEMS, "make"
    if args.trained:
        systems, make = TRAINED_SYSTEMS, "make_trained"
    module_name, options = systems[args.system]
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding.worker")
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
