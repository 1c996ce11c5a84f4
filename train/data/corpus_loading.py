"""Opens the data set of `--dataset`, or the mixture of a JSON file."""

import fractions
import json
import pathlib

from command_line.errors import UserError
from train.data.corpus import SIDES, Corpus, FilePairs, Mixture, demo_pairs, refuse_pipe
from train.data.encoded_corpus import DigestCachedCorpus
from train.data.tfds_pairs import TfdsPairs, find_builder

FILE_KEYS = {"source", "target"}
DEMO_SPLITS = ("train", "validation", "test", "unseen")
DATASET_KEYS = {"dataset", "split", "source_language"}


def open_corpus(
    name: str,
    split: str,
    cache: pathlib.Path,
    source_language: str | None = None,
    data_dir: pathlib.Path | None = None,
) -> Corpus:
    """Returns a split of a named corpus.

    Args:
        name: `"demo"`, or `"tfds:"` and a set of TensorFlow Datasets.
        split: Such as `"train"`.
        cache: Folder for lengths and digests of files.
        source_language: One of a set's two languages, or `None` for its first.
        data_dir: Folder of prepared sets, or `None` for the package's.
    """
    if name == "demo":
        if split not in DEMO_SPLITS or source_language not in (None, "en"):
            raise UserError(
                f"the demo goes from en and has {', '.join(DEMO_SPLITS)}. "
                f"Received: source language {source_language}, split {split}"
            )
        return demo_pairs(split)
    if not name.startswith("tfds:"):
        raise UserError(
            "--dataset must be demo or tfds:NAME/CONFIG, such as "
            f"tfds:wmt14_translate/de-en. Received: {name}"
        )
    builder = find_builder(name.removeprefix("tfds:"), data_dir)
    pairs = TfdsPairs(builder, split, source_language)
    return DigestCachedCorpus(pairs, pairs.files(), cache)


def read_mixture(
    path: pathlib.Path,
    cache: pathlib.Path,
    source_language: str | None = None,
    data_dir: pathlib.Path | None = None,
    drop_invalid: bool = False,
) -> Mixture:
    """Reads the file of `--mixture`.

    The file holds a JSON list of objects. An object has `"source"` and
    `"target"`, two files relative to the mixture's folder; or `"dataset"` and
    optionally `"split"` and `"source_language"` (default: `source_language`).
    It may also have a `"weight"` (default: 1).
    """
    refuse_pipe(path)
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except ValueError as error:  # The file is not JSON or not UTF-8.
        raise UserError(f"{path} must be JSON: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path} must hold a list of sources. Received: {entries!r}")
    parts = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, source {number}"
        check_entry(entry, where)
        weight = fractions.Fraction(str(entry.get("weight", 1)))
        if "dataset" in entry:
            part = open_corpus(
                entry["dataset"],
                entry.get("split", "train"),
                cache,
                entry.get("source_language", source_language),
                data_dir,
            )
        else:
            files = [path.parent / entry[side] for side in SIDES]
            part = DigestCachedCorpus(FilePairs(*files, drop_invalid), files, cache)
        parts.append((part, weight))
    return Mixture(parts)


def check_entry(entry: object, where: str) -> None:
    keys = set(entry) - {"weight"} if isinstance(entry, dict) else set()
    if keys != FILE_KEYS and not {"dataset"} <= keys <= DATASET_KEYS:
        raise UserError(
            f'{where} must name "source" and "target", or "dataset" and if '
            'need be "split" and "source_language", and may have a "weight". '
            f"Received: {json.dumps(entry)}"
        )
    texts = [entry[key] for key in sorted(keys)]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"{where} must be of strings. Received: {texts}")
    weight = entry.get("weight", 1)
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not 0 < weight < float("inf"):
        raise UserError(
            f'"weight" of {where} must be a number above 0. Received: {weight!r}'
        )
