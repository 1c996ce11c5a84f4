"""Worker process that runs one system of `benchmarks.decoding` on request.

First it decodes a few short sentences, so that libraries are started and
functions traced. Then it gets names of cases, and decodes their batches.
"""

import importlib
import json
import pathlib
import time
from collections.abc import Callable

from benchmarks.shared.interleaved_runs import (
    NotMeasuredError,
    answer_orders,
    peak_memory,
)
from benchmarks.shared.model_sizes import BEAM_SIZE

WARM_UP_CASE = "warm-up"  # The case that is not timed.
# System: module, beams and precision. `make` of the module returns a function
# from a batch to the ids of its translations, of a model with random weights.
SYSTEMS = {
    "package": ("package", BEAM_SIZE, "float32"),
    "package-bfloat16": ("package", BEAM_SIZE, "bfloat16"),
    "package-greedy": ("package", 1, "float32"),
    "ctranslate2": ("ctranslate2", BEAM_SIZE, "float32"),
    "ctranslate2-int8": ("ctranslate2", BEAM_SIZE, "int8"),
    "ctranslate2-greedy": ("ctranslate2", 1, "float32"),
    "ctranslate2-int8-greedy": ("ctranslate2", 1, "int8"),
    "litert": ("litert", BEAM_SIZE, "float32"),
    "litert-int8": ("litert", BEAM_SIZE, "int8"),
    "litert-greedy": ("litert", 1, "float32"),
    "litert-int8-greedy": ("litert", 1, "int8"),
    "hugging-face": ("hugging_face", BEAM_SIZE, "float32"),
    "keras-hub": ("keras_hub", BEAM_SIZE, "float32"),
}
# These modules also have `make_trained`, of a trained model; there the function
# takes and returns texts.
TRAINED_MODULES = ("package", "ctranslate2", "litert")


def decode(translate: Callable, batches: list[dict]) -> dict[str, list]:
    """Returns the seconds of each batch, and all translations in order."""
    seconds, outputs = [], []
    for batch in batches:
        started = time.perf_counter()
        found = translate(batch)
        seconds.append(time.perf_counter() - started)
        for ids in found:
            if "length" in batch and len(ids) != batch["length"]:
                raise NotMeasuredError(
                    f"decoded {len(ids)} tokens instead of {batch['length']}"
                )
        outputs += found
    return {"seconds": seconds, "outputs": outputs}


def start(options: dict) -> tuple[dict, Callable[[str], dict]]:
    folder = pathlib.Path(options["folder"])
    module_name, beam_size, precision = SYSTEMS[options["system"]]
    module = importlib.import_module(f"benchmarks.decoding.{module_name}")
    make = module.make_trained if options["is_trained"] else module.make
    translate = make(folder, beam_size, precision)
    cases = json.loads((folder / "cases.json").read_text())
    decode(translate, cases[WARM_UP_CASE])

    def answer(case: str) -> dict:
        found = decode(translate, cases[case])
        return {"case": case, "peak_bytes": peak_memory(), **found}

    return {}, answer


if __name__ == "__main__":
    answer_orders(start)
