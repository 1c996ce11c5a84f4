"""Opens the data set of `--dataset`, or the mixture of a JSON file."""

import fractions
import json
import pathlib

from command_line.errors import UserError
from train.data.corpus import SIDES, Corpus, FilePairs, Mixture, demo_pairs, refuse_pipe
from train.data.encoded_corpus import DigestCachedCorpus
from train.data.formats import hugging_face, tensorflow_datasets
from train.data.formats.pair_file import open_pair_file

LANGUAGE_KEYS = ("source_language", "target_language")
# Keys of a source of a mixture: those that it must have, and may have.
SOURCE_KEYS = (
    ({"source", "target"}, set()),
    ({"pairs"}, {*LANGUAGE_KEYS}),
    ({"dataset"}, {"split", *LANGUAGE_KEYS}),
)
SETS = {"hf": hugging_face.open_set, "tfds": tensorflow_datasets.open_set}
DEMO_SPLITS = ("train", "validation", "test", "unseen")

# The codes of source and target; `None` if not given.
Languages = tuple[str | None, str | None]


def open_corpus(
    name: str,
    split: str,
    cache: pathlib.Path,
    languages: Languages = (None, None),
    data_dir: pathlib.Path | None = None,
) -> Corpus:
    """Returns a split of a named corpus.

    Args:
        name: `"demo"`, `"tfds:"` and a set of TensorFlow Datasets, or `"hf:"`
            and one of Hugging Face's.
        split: Such as `"train"`.
        cache: Folder for lengths and digests of files.
        languages: The codes of both. With `None`, a set of TensorFlow Datasets
            goes from the first that it names to the other one.
        data_dir: Folder of prepared sets, or `None` for the package's.
    """
    source, target = languages
    if name == "demo":
        known = source in (None, "en") and target in (None, "es")
        if split not in DEMO_SPLITS or not known:
            raise UserError(
                f"the demo goes from en to es and has {', '.join(DEMO_SPLITS)}. "
                f"Received: languages {source}, {target}, split {split}"
            )
        return demo_pairs(split)
    kind, _, set_name = name.partition(":")
    if kind not in SETS:
        raise UserError(
            "--dataset must be demo, tfds:NAME/CONFIG or hf:OWNER/NAME, such as "
            f"tfds:wmt14_translate/de-en. Received: {name}"
        )
    pairs, files = SETS[kind](set_name, split, languages, data_dir)
    return DigestCachedCorpus(pairs, files, cache)


def open_files(files: list[pathlib.Path], languages: Languages) -> Corpus:
    """Returns the pairs of two text files, or of one file of pairs."""
    if len(files) == len(SIDES):
        return FilePairs(*files)
    return open_pair_file(*files, languages)


def read_mixture(
    path: pathlib.Path,
    cache: pathlib.Path,
    languages: Languages = (None, None),
    data_dir: pathlib.Path | None = None,
) -> Mixture:
    """Reads the file of `--mixture`.

    The file holds a JSON list of objects. An object has `"source"` and
    `"target"`, two files relative to the mixture's folder; `"pairs"`, one such
    file; or `"dataset"` and optionally `"split"`. The latter two may have
    `"source_language"` and `"target_language"` (default: `languages`), and each
    a `"weight"` (default: 1).
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
        codes = tuple(map(entry.get, LANGUAGE_KEYS, languages))
        if "dataset" in entry:
            split = entry.get("split", "train")
            part = open_corpus(entry["dataset"], split, cache, codes, data_dir)
        else:
            keys = [key for key in ("pairs", *SIDES) if key in entry]
            files = [path.parent / entry[key] for key in keys]
            pairs = open_files(files, codes)
            part = DigestCachedCorpus(pairs, files, cache)
        parts.append((part, weight))
    return Mixture(parts)


def check_entry(entry: object, where: str) -> None:
    keys = set(entry) - {"weight"} if isinstance(entry, dict) else set()
    if not any(must <= keys <= must | may for must, may in SOURCE_KEYS):
        raise UserError(
            f'{where} must name "source" and "target", or "pairs", or "dataset" '
            'and if need be "split"; the latter two may name "source_language" '
            'and "target_language", and each a "weight". '
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
