"""Scores an exported model on a test set: sacreBLEU, chrF and speed.

A parsing model is scored on --trees, by labelled brackets.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import time

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.errors import refuse_damage
from command_line.text_files import read_lines
from export.bundle import layout
from export.bundle.saved_model import FILE
from export.bundle.versions import locked
from export.bundle.versions import newest_version
from export.report import tree_pictures
from export.scoring import parses
from export.scoring import scores
from export.translate import add_export_arguments
from export.translate import load
from export.translate import tell_truncated
from export.translate import translate_lines
from keras_transformer.parsing.trees import read_trees


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m export.evaluate",
        description=__doc__,
    )
    add_export_arguments(parser)
    path = {"type": pathlib.Path, "metavar": "FILE"}
    parser.add_argument(
        "--source", **path, help="sentences, one a line; any file may be gzip"
    )
    parser.add_argument("--reference", **path, help="their translations")
    parser.add_argument(
        "--trees", **path, help="in place of both: bracketed trees"
    )
    parser.add_argument(
        "--picture",
        **path,
        help="HTML to draw the first parses in, beside those of --trees",
    )
    parser.add_argument(
        "--paper-bleu",
        nargs="?",
        const="de",
        metavar="LANGUAGE",
        help="add the paper's BLEU: tokenized by Moses's rules for this target "
        "language (de without one), compounds split",
    )
    parser.add_argument(
        "--confidence",
        action="store_true",
        help="add 95%% intervals by bootstrap",
    )
    parser.add_argument(
        "--baseline",
        type=pathlib.Path,
        metavar="FILE",
        help="translations of another system, to add the paired bootstrap test",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON instead of text"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the scores in the export, in scores.json",
    )
    return parser.parse_args(argv)


def check_files(args: argparse.Namespace) -> list[str]:
    """Returns the options that name the test set.

    Raises:
        UserError: If it is not named, or named twice.
    """
    names = ("source", "reference", "trees")
    given = [name for name in names if getattr(args, name)]
    if given not in (["source", "reference"], ["trees"]):
        raise UserError(
            "the test set must be --source and --reference, or --trees. "
            f"Received: {', '.join(f'--{n}' for n in given) or 'neither'}"
        )
    if args.picture:
        if not args.trees:
            raise UserError("--picture needs --trees. Received: --source")
        if not args.picture.parent.is_dir():
            raise UserError(
                "--picture must be a file in a folder that is there. "
                f"Received: {args.picture}"
            )
        tree_pictures.load_svgling()
    if args.trees:
        for name in ("paper_bleu", "confidence", "baseline"):
            if getattr(args, name):
                option = "--" + name.replace("_", "-")
                raise UserError(
                    f"{option} is of translations. Received: --trees"
                )
    return given


def read_test_set(args: argparse.Namespace) -> tuple[list[str], list]:
    """Returns sentences, and their translations or trees."""
    if args.trees:
        trees = list(read_trees(args.trees))
        return [" ".join(tree.words) for tree in trees], trees
    sources = list(read_lines(args.source))
    return sources, read_aligned(args, sources, "reference")


def read_aligned(
    args: argparse.Namespace, sources: list[str], name: str
) -> list[str]:
    """Reads the file of an option, which has a line for each source."""
    path = getattr(args, name)
    lines = list(read_lines(path))
    if len(lines) != len(sources):
        raise UserError(
            f"--source and --{name} must have as many lines. Received: "
            f"{len(sources)} lines in {args.source}, {len(lines)} lines "
            f"in {path}"
        )
    return lines


def scores_path(args: argparse.Namespace) -> pathlib.Path:
    """Returns where `--record` writes.

    Raises:
        UserError: If that is no SavedModel's folder.
    """
    if args.server:
        raise UserError(
            "--record needs --export-dir. Received: --server " + args.server
        )
    return newest_version(args.export_dir, FILE) / layout.SCORES


def read_scores(path: pathlib.Path) -> dict:
    """Returns what is recorded in a version.

    Raises:
        UserError: If that is damaged.
    """
    if not path.exists():
        return {}
    with refuse_damage(path):
        return json.loads(path.read_text("utf-8"))


def record(
    path: pathlib.Path, files: dict[str, pathlib.Path], results: dict
) -> None:
    """Writes scores into a version, under the name of the first file.

    Args:
        path: What `scores_path` returned.
        files: The test set, by the names of its options.
        results: The scores.
    """
    digests = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files.items()
    }
    first, *_ = files.values()
    export_dir = path.parents[2]
    with locked(export_dir):
        there = read_scores(path)
        name = choose_name(there, first.name, digests)
        there[name] = {"sha256": digests, **results}
        path.parent.mkdir(exist_ok=True)
        # Outside the version, whose files `export.check` knows.
        beside = export_dir / f".{path.name}.part"
        beside.write_text(json.dumps(there, indent=2) + "\n", encoding="utf-8")
        beside.replace(path)


def choose_name(there: dict, name: str, digests: dict[str, str]) -> str:
    """Returns a name, numbered where it has the scores of other files."""
    chosen, number = name, 1
    while chosen in there and there[chosen]["sha256"] != digests:
        number += 1
        chosen = f"{name} {number}"
    return chosen


def run(args: argparse.Namespace) -> None:
    names = check_files(args)
    sources, references = read_test_set(args)
    baseline = args.baseline and read_aligned(args, sources, "baseline")
    if args.paper_bleu:
        scores.load_splitter(args.paper_bleu)  # It may be refused.
    path = scores_path(args) if args.record else None
    if path:
        read_scores(path)  # It may be refused.
    translate = load(args)
    translate(sources[:1])  # The first call prepares the graph.
    started = time.monotonic()
    lines = [line.encode() for line in sources]
    counts = collections.Counter()
    outputs = translate_lines(translate, lines, args.batch_tokens, counts)
    translations = list(map(parses.decode, outputs))
    seconds = time.monotonic() - started
    tell_truncated(counts)
    if args.trees:
        results, trees = parses.score(references, translations)
    else:
        results = scores.score(
            translations,
            references,
            args.paper_bleu,
            args.confidence,
            baseline,
        )
    results["truncated"] = counts["truncated"]
    # First of all: what is written later may fail.
    print_results(args, results, len(sources), seconds)
    if args.picture:
        pairs = zip(references, trees, strict=True)
        tree_pictures.write_pictures(args.picture, pairs)
    if path:
        record(path, {name: getattr(args, name) for name in names}, results)


def print_results(
    args: argparse.Namespace, results: dict, count: int, seconds: float
) -> None:
    """Prints scores, and the speed of `count` sentences."""
    speed = count / seconds
    if args.json:
        print(json.dumps({**results, "sentences_per_second": speed}, indent=2))
        return
    describe = parses.describe_scores if args.trees else scores.describe
    print("\n".join(describe(results)))
    print(
        f"{'speed':18}{speed:6.1f}  sentences a second "
        f"({count:,} in {seconds:.1f} s)"
    )


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    with exit_on_user_error():
        run(args)


if __name__ == "__main__":
    main()
