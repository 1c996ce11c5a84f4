"""Opens the data set of `--dataset`, or the mixture of a JSON file."""

import dataclasses
import fractions
import json
import pathlib
import re

from command_line.errors import UserError
from train.data.corpus import SIDES, Corpus, FilePairs, demo_pairs, refuse_pipe
from train.data.derived_corpora import InLanguages
from train.data.encoded_corpus import DigestCachedCorpus
from train.data.formats import hugging_face, tensorflow_datasets
from train.data.formats.pair_file import open_pair_file

LANGUAGE_KEYS = ("source_language", "target_language")
LANGUAGE = re.compile("[A-Za-z]+([_-][A-Za-z0-9]+)*")
# Keys of a source of a mixture: its training pairs, its validation pairs, others.
TRAINING_KEYS = ({"source", "target"}, {"pairs"}, {"dataset"}, {"dataset", "split"})
VALIDATION_KEYS = (
    set(),
    {"validation_source", "validation_target"},
    {"validation_pairs"},
)
OTHER_KEYS = {"weight", *LANGUAGE_KEYS}
SETS = {"hf": hugging_face.open_set, "tfds": tensorflow_datasets.open_set}
DEMO_SPLITS = ("train", "validation", "test", "unseen")

# The codes of source and target; `None` if not given.
Languages = tuple[str | None, str | None]


def open_corpus(
    name: str, split: str, cache: pathlib.Path, languages: Languages = (None, None)
) -> Corpus:
    """Returns a split of a named corpus.

    Args:
        name: `"demo"`, `"tfds:"` and a set of TensorFlow Datasets, or `"hf:"`
            and one of Hugging Face's.
        split: Such as `"train"`.
        cache: Folder for lengths and digests of files.
        languages: The codes of both, of which TensorFlow Datasets needs none.
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
    pairs, files = SETS[kind](set_name, split, languages)
    return DigestCachedCorpus(pairs, files, cache)


def open_files(
    files: list[pathlib.Path], languages: Languages, cache: pathlib.Path
) -> Corpus:
    """Returns the pairs of two text files, or of one file of pairs."""
    are_texts = len(files) == len(SIDES)
    pairs = FilePairs(*files) if are_texts else open_pair_file(*files, languages)
    return DigestCachedCorpus(pairs, files, cache)


@dataclasses.dataclass(frozen=True)
class Source:
    """A source of training text.

    Attributes:
        corpus: The training pairs.
        weight: How often each occurs in a pass, on average.
        validation: The validation pairs, if it names or has held out some.
        is_held_out: Whether these are held out.
    """

    corpus: Corpus
    weight: fractions.Fraction = fractions.Fraction(1)
    validation: Corpus | None = None
    is_held_out: bool = False


def read_mixture(
    path: pathlib.Path, cache: pathlib.Path, languages: Languages = (None, None)
) -> tuple[list[Source], bool]:
    """Reads the file of `--mixture`.

    It holds a JSON list of objects with the keys of `TRAINING_KEYS`,
    `VALIDATION_KEYS` and `OTHER_KEYS`; files are relative to its folder.

    Returns:
        The sources, and whether they name several target languages.
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
    sources, targets = [], []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, source {number}"
        check_entry(entry, where)
        codes = tuple(map(entry.get, LANGUAGE_KEYS, languages))
        targets.append(codes[1])
        training, validation = (
            open_mixture_files(entry, prefix, path.parent, cache, codes)
            for prefix in ("", "validation_")
        )
        if training is None:
            split = entry.get("split", "train")
            training = open_corpus(entry["dataset"], split, cache, codes)
        training = in_languages(training, codes)
        if validation is not None:
            validation = InLanguages(validation, training.languages())
        weight = fractions.Fraction(str(entry.get("weight", 1)))
        sources.append(Source(training, weight, validation))
    # A number is that of a column.
    codes = {code for code in targets if code and not code.isdecimal()}
    others = {source.corpus.languages()[1] for source in sources} - {""}
    is_multilingual = len(codes) > 1 or (len(codes) == 1 and len(others) > 1)
    if is_multilingual and not all(LANGUAGE.fullmatch(code or "") for code in targets):
        raise UserError(
            f'each source of {path} must have a code such as "de" as its '
            '"target_language", since some have different ones. Received: '
            f"{json.dumps(targets)}"
        )
    return sources, is_multilingual


def open_mixture_files(
    entry: dict,
    prefix: str,
    folder: pathlib.Path,
    cache: pathlib.Path,
    codes: Languages,
) -> Corpus | None:
    """Returns the pairs of the files of an entry whose keys have a prefix, if any."""
    keys = [prefix + key for key in ("pairs", *SIDES)]
    files = [folder / entry[key] for key in keys if key in entry]
    return open_files(files, codes, cache) if files else None


def in_languages(corpus: Corpus, codes: Languages) -> Corpus:
    """Returns a corpus in the languages that are given, else in its own ones."""
    found = [
        given if given and not given.isdecimal() else own
        for given, own in zip(codes, corpus.languages(), strict=True)
    ]
    return InLanguages(corpus, tuple(found))


def check_entry(entry: object, where: str) -> None:
    keys = {*entry} - OTHER_KEYS if isinstance(entry, dict) else None
    if keys not in [a | b for a in TRAINING_KEYS for b in VALIDATION_KEYS]:
        raise UserError(
            f'{where} must name "source" and "target", or "pairs", or "dataset" '
            'and if need be "split"; each may name "source_language", '
            '"target_language", a "weight", and "validation_source" and '
            '"validation_target", or "validation_pairs". '
            f"Received: {json.dumps(entry)}"
        )
    texts = [entry[key] for key in sorted({*entry} - {"weight"})]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"{where} must be of strings. Received: {texts}")
    weight = entry.get("weight", 1)
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not 0 < weight < float("inf"):
        raise UserError(
            f'"weight" of {where} must be a number above 0. Received: {weight!r}'
        )
