"""Checks a version of an export for LiteRT."""

import json
import pathlib
from collections.abc import Callable, Iterator

from export.bundle.file_checks import LEFT_OUT, Check, check_files, check_loading
from export.bundle.file_layout import LITERT_CONFIG, LITERT_SAMPLES
from export.bundle.sample_requests import abbreviate, is_close


def check_litert(folder: pathlib.Path, load: Callable) -> Iterator[Check]:
    """Runs the checks of a version and yields their results.

    A version that is incomplete or changed is not loaded.

    Args:
        folder: Folder that `write_litert` wrote.
        load: Function from the folder to its `litert_translator.Translator`.
    """
    check, files = check_loading(
        LITERT_CONFIG, lambda: read_json(folder / LITERT_CONFIG)["files"]
    )
    yield check
    if files is not None:
        check = check_files(folder, files)
        yield check
    if check.problems:
        yield Check("samples", [], [], LEFT_OUT)
    else:
        check, samples = check_loading(
            "samples", lambda: check_samples(folder, load(folder))
        )
        yield samples or check


def read_json(path: pathlib.Path):
    return json.loads(path.read_text("utf-8"))


def check_samples(folder: pathlib.Path, translator) -> Check:
    """Translates the samples and compares with the recorded translations."""
    check = Check("samples", [], [])
    for sample in read_json(folder / LITERT_SAMPLES):
        (found,) = translator.translate([sample["source"]])
        wanted = sample["translation"], sample["score"]
        if found.text != wanted[0] or not is_close(found.score, wanted[1]):
            check.problems.append(
                f"wanted {abbreviate(wanted[0])}, {wanted[1]}, "
                f"received {abbreviate(found.text)}, {found.score:.4f}"
            )
        check.notes.append(
            f"{abbreviate(sample['source'])} -> {abbreviate(found.text)}"
        )
    return check
