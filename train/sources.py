"""Where a corpus comes from: its name on the command line, or a mixture."""

import fractions
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterator

from keras_transformer.errors import UserError
from train.corpus import Corpus
from train.corpus import FilePairs
from train.corpus import demo_pairs
from train.tfds_pairs import TfdsPairs
from train.tfds_pairs import find_builder

FILE_KEYS = {"source", "target"}
DATASET_KEYS = {"dataset", "split", "source_language"}


def open_dataset(
    name: str,
    split: str,
    source_language: str | None = None,
    data_dir: pathlib.Path | None = None,
) -> Corpus:
    """Returns a split of a corpus that has a name.

    Args:
        name: `"demo"`, or `"tfds:"` and a set of TensorFlow Datasets.
        split: Such as `"train"`.
        source_language: One of a set's two languages.
        data_dir: Folder of prepared sets.

    Raises:
        UserError: If there is no such corpus, split or language, or no data.
    """
    if name == "demo":
        return demo_pairs(split)
    if not name.startswith("tfds:"):
        raise UserError(
            "--dataset must be demo or tfds:NAME/CONFIG, such as "
            f"tfds:wmt14_translate/de-en. Received: {name}"
        )
    builder = find_builder(name.removeprefix("tfds:"), data_dir)
    return TfdsPairs(builder, split, source_language)


class Mixture(Corpus):
    """Several corpora, one behind the other, each with a weight.

    Pair `i` of a corpus of weight `w` comes `floor(w (i + 1)) - floor(w i)`
    times in every epoch: 2.5 makes two and three copies in turn, 0.5 leaves
    every other pair out. The vocabulary is learnt on all text, weights aside.

    Args:
        parts: Pairs of a corpus and its weight, a positive fraction.
    """

    def __init__(self, parts: list[tuple[Corpus, fractions.Fraction]]):
        self._parts = parts

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return itertools.chain.from_iterable(part for part, _ in self._parts)

    def __len__(self) -> int:
        return sum(len(part) for part, _ in self._parts)

    def digest(self) -> str:
        parts = [[part.digest(), str(weight)] for part, weight in self._parts]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def repeats(self) -> Iterator[int]:
        for part, weight in self._parts:
            before = 0
            for number in range(1, len(part) + 1):
                # What `floor(weight * number)` is, quickly.
                after = number * weight.numerator // weight.denominator
                yield after - before
                before = after


def read_mixture(
    path: pathlib.Path, data_dir: pathlib.Path | None = None
) -> Mixture:
    """Reads the file of `--mixture`.

    It holds a JSON list of objects: `"source"` and `"target"`, two files whose
    names hold from the mixture's folder on, or `"dataset"`, and if need be
    `"split"` and `"source_language"`; and each may have a `"weight"`, 1 by
    default.

    Raises:
        UserError: If the file, or what it names, is not as it must be.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except ValueError as error:  # No JSON, or no UTF-8.
        raise UserError(f"{path} must be JSON: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise UserError(
            f"{path} must hold a list of sources. Received: {entries!r}"
        )
    parts = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, source {number}"
        check_entry(entry, where)
        weight = fractions.Fraction(str(entry.get("weight", 1)))
        parts.append((open_entry(entry, path.parent, data_dir), weight))
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
            f'"weight" of {where} must be a number above 0. '
            f"Received: {weight!r}"
        )


def open_entry(
    entry: dict, folder: pathlib.Path, data_dir: pathlib.Path | None
) -> Corpus:
    if "dataset" not in entry:
        return FilePairs(folder / entry["source"], folder / entry["target"])
    return open_dataset(
        entry["dataset"],
        entry.get("split", "train"),
        entry.get("source_language"),
        data_dir,
    )
