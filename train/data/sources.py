"""Where a corpus comes from: its name on the command line, or a mixture."""

import argparse
import fractions
import json
import pathlib

from command_line.errors import UserError
from train.data.corpus import FILES
from train.data.corpus import TREES
from train.data.corpus import Corpus
from train.data.corpus import FilePairs
from train.data.corpus import Mixture
from train.data.corpus import demo_pairs
from train.data.encoded_corpus import Remembered
from train.data.encoding import SIDES
from train.data.tfds_pairs import TfdsPairs
from train.data.tfds_pairs import find_builder
from train.data.tree_pairs import TreePairs

FILE_KEYS = {"source", "target"}
TRANSLATION, PARSING = "translation", "parsing"
DEMO_SPLITS = ("train", "validation", "test", "unseen")
OF_SETS = ("source_language", "train_split", "validation_split")
DATASET_KEYS = {"dataset", "split", "source_language"}


def add_arguments(group) -> None:
    """Adds the options that name the corpus."""
    path = {"type": pathlib.Path, "metavar": "FILE"}
    group.add_argument(
        "--task",
        choices=[TRANSLATION, PARSING],
        help="sentences to sentences, or to their trees (Section 6.3; default: "
        f"{TRANSLATION})",
    )
    for name in TREES:
        group.add_argument(
            option(name),
            **path,
            help=f"with --task {PARSING}: bracketed trees, UTF-8, may be gzip",
        )
    group.add_argument(
        "--dataset",
        metavar="NAME",
        help="demo, the embedded English-Spanish one, or a translation set of "
        "TensorFlow Datasets: tfds:wmt14_translate/de-en",
    )
    for name in FILES:
        group.add_argument(
            option(name), **path, help="UTF-8, one sentence a line, may be gzip"
        )
    group.add_argument(
        "--mixture",
        type=pathlib.Path,
        metavar="FILE",
        help="JSON list of training sources and their weights; the validation "
        "set comes from --dataset or the validation files",
    )
    group.add_argument(
        "--source-language",
        metavar="LANGUAGE",
        help="of a tfds: set (default: the first that it names)",
    )
    for split in ("train", "validation"):
        group.add_argument(
            f"--{split}-split",
            metavar="SPLIT",
            help=f"of a tfds: set, or a part such as train[99%%:] (default: "
            f"{split})",
        )
    group.add_argument(
        "--data-dir",
        type=pathlib.Path,
        help="folder of TensorFlow Datasets (default: the package's)",
    )


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def check_arguments(args: argparse.Namespace) -> None:
    """Refuses a corpus that is named twice, or not whole."""
    if args.task == TRANSLATION:
        args.task = None  # As in runs that are older than the option.
    trees = [option(name) for name in TREES if getattr(args, name)]
    if args.task == PARSING:
        check_parsing(args, trees)
        return
    if trees:
        raise UserError(
            f"{trees[0]} needs --task {PARSING}. Received: {trees[0]} alone"
        )
    files = FILES[2:] if args.mixture else FILES
    given = [option(name) for name in FILES if getattr(args, name)]
    wanted = [option(name) for name in files]
    if args.dataset is None and given != wanted:
        raise UserError(
            f"the corpus must be --dataset NAME, or all of {', '.join(wanted)}"
            f"{' with --mixture' if args.mixture else ''}. "
            f"Received: {', '.join(given) or 'neither'}"
        )
    if args.dataset and given:
        raise UserError(
            "the corpus must be --dataset or files, not both. "
            f"Received: --dataset {args.dataset} and {', '.join(given)}"
        )
    given = [option(name) for name in OF_SETS if getattr(args, name)]
    if given and not args.dataset and not args.mixture:
        raise UserError(
            f"{', '.join(map(option, OF_SETS))} are of --dataset. "
            f"Received: {', '.join(given)} and files"
        )
    if args.train_split and args.mixture:
        raise UserError(
            'a source of --mixture must name its own "split". '
            f"Received: --train-split {args.train_split}"
        )
    if args.validation_split and not args.dataset:
        raise UserError(
            "--validation-split must come with --dataset. "
            f"Received: --validation-split {args.validation_split} and files"
        )


def check_parsing(args: argparse.Namespace, trees: list[str]) -> None:
    """Refuses what does not go with `--task parsing`."""
    wanted = [option(name) for name in TREES]
    others = ("dataset", *FILES, "mixture", *OF_SETS, "validate_bleu")
    given = [option(name) for name in others if getattr(args, name)]
    if given or trees != wanted:
        raise UserError(
            f"--task {PARSING} must come with {' and '.join(wanted)}, and "
            "without other corpora and --validate-bleu. "
            f"Received: {', '.join(trees + given) or 'none of them'}"
        )


def load_corpus(args: argparse.Namespace) -> tuple[Corpus, Corpus]:
    """Returns the training and the validation pairs."""
    cache = args.cache_dir or args.run_dir / "encoded"
    if args.task == PARSING:
        paths = [getattr(args, name) for name in TREES]
        return tuple(
            Remembered(TreePairs(path), [path], cache) for path in paths
        )
    training = (
        read_mixture(args.mixture, cache, args.source_language, args.data_dir)
        if args.mixture
        else open_split(args, "train", cache)
    )
    return training, open_split(args, "validation", cache)


def open_split(
    args: argparse.Namespace, split: str, cache: pathlib.Path
) -> Corpus:
    if args.dataset is None:
        files = [getattr(args, f"{split}_{side}") for side in SIDES]
        return Remembered(FilePairs(*files), files, cache)
    part = getattr(args, f"{split}_split") or split
    return open_dataset(
        args.dataset, part, cache, args.source_language, args.data_dir
    )


def open_dataset(
    name: str,
    split: str,
    cache: pathlib.Path,
    source_language: str | None = None,
    data_dir: pathlib.Path | None = None,
) -> Corpus:
    """Returns a split of a corpus that has a name.

    Args:
        name: `"demo"`, or `"tfds:"` and a set of TensorFlow Datasets.
        split: Such as `"train"`.
        cache: Folder for what is known of its files.
        source_language: One of a set's two languages.
        data_dir: Folder of prepared sets.

    Raises:
        UserError: If there is no such corpus, split or language, or no data.
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
    return Remembered(pairs, pairs.files(), cache)


def read_mixture(
    path: pathlib.Path,
    cache: pathlib.Path,
    source_language: str | None = None,
    data_dir: pathlib.Path | None = None,
) -> Mixture:
    """Reads the file of `--mixture`.

    It holds a JSON list of objects: `"source"` and `"target"`, two files whose
    names hold from the mixture's folder on, or `"dataset"`, and if need be
    `"split"` and `"source_language"`; and each may have a `"weight"`, 1 by
    default.

    Args:
        path: Path of the file.
        cache: Folder for what is known of its sources.
        source_language: That of data sets which name none of their own.
        data_dir: Folder of prepared sets.

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
        if "dataset" in entry:
            part = open_dataset(
                entry["dataset"],
                entry.get("split", "train"),
                cache,
                entry.get("source_language", source_language),
                data_dir,
            )
        else:
            files = [path.parent / entry[side] for side in SIDES]
            part = Remembered(FilePairs(*files), files, cache)
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
            f'"weight" of {where} must be a number above 0. '
            f"Received: {weight!r}"
        )
