"""Runs LiteRT with the weights of this package."""

import concurrent.futures
import json
import os
import pathlib
import threading
from collections.abc import Callable

import litert_translator
from litert_translator.graphs import Model
from litert_translator.search import search


def make(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[list[int]]]:
    path = folder / f"litert-{precision}-{beam_size}" / "1"
    settings = json.loads((path / "config.json").read_text("utf-8"))
    local = threading.local()

    def find(ids, length):
        if not hasattr(local, "model"):
            local.model = Model(path, settings)
        extra = {"max_extra_length": length - len(ids)}
        (found,) = search(local.model, ids, [], 1, {**settings["search"], **extra})
        return found.ids

    pool = concurrent.futures.ThreadPoolExecutor(num_threads())

    def translate(batch):
        rows = batch["source_ids"]
        return list(pool.map(find, rows, [batch["length"]] * len(rows)))

    return translate


def make_trained(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[str]]:
    path = folder / f"litert-{precision}-{beam_size}" / "1"
    translate = litert_translator.Translator(path, num_threads()).translate
    return lambda batch: [found.text for found in translate(batch["texts"])]


def num_threads() -> int:
    return int(os.environ["OMP_NUM_THREADS"])
