"""Scores an exported model on a test set: sacreBLEU, chrF and speed."""

import collections
import dataclasses
import json
import pathlib
import time

import numpy as np

from command_line import bleu_tokenizer
from command_line.errors import UserError, exit_on_user_error
from command_line.options import option, parse_command
from command_line.progress import show_progress
from command_line.text_files import read_lines
from documents.glossary import Glossary
from translate import translation_scores
from translate.line_batching import print_warnings, translate_lines
from translate.loading import TranslatorOptions, load

FILE = {"kind": pathlib.Path, "metavar": "FILE"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions(TranslatorOptions):
    source: pathlib.Path = option(
        help="sentences, one a line; any file may be gzip", **FILE
    )
    reference: pathlib.Path = option(help="their translations", **FILE)
    bleu_tokenize: str | None = option(None, bleu_tokenizer.HELP, metavar="NAME")
    paper_bleu: str | None = option(
        None,
        "add the paper's BLEU: tokenized by Moses's rules for this target "
        "language (de without one), compounds split; and that of lower case, "
        "compounds whole",
        nargs="?",
        const="de",
        metavar="LANGUAGE",
    )
    confidence: bool = option(False, "add 95%% intervals by bootstrap")
    at_least: float = option(
        0.0,
        "end with code 1 if BLEU is lower (default: never)",
        kind=float,
        metavar="BLEU",
    )
    json: bool = option(False, "print JSON instead of text")


def parse_options(argv: list[str] | None = None) -> EvaluateOptions:
    return parse_command("translate.evaluate", __doc__, EvaluateOptions, argv)


def read_test_set(options: EvaluateOptions) -> tuple[list[str], list[str]]:
    """Returns sentences and their reference translations."""
    sources = list(read_lines(options.source))
    references = list(read_lines(options.reference))
    if len(references) != len(sources):
        raise UserError(
            "--source and --reference must have as many lines. Received: "
            f"{len(sources)} lines in {options.source}, {len(references)} lines "
            f"in {options.reference}"
        )
    return sources, references


def choose_tokenizer(options: EvaluateOptions) -> str:
    """Returns the name of BLEU's tokenizer, which must be installed."""
    tokenize = options.bleu_tokenize or bleu_tokenizer.choose_tokenizer(
        bleu_tokenizer.language_of(options.reference)
    )
    bleu_tokenizer.make_bleu(tokenize)
    return tokenize


def run(options: EvaluateOptions) -> None:
    sources, references = read_test_set(options)
    if options.paper_bleu:
        # It may be refused.
        translation_scores.load_splitter(options.paper_bleu)
    tokenize = choose_tokenizer(options)
    runtime = load(options)
    # The first call traces the graph; it is not timed.
    runtime.translate_batch(sources[:1])
    started = time.monotonic()
    lines = [line.encode() for line in sources]
    counts = collections.Counter()
    outputs = translate_lines(runtime, lines, options.batch_tokens, counts)
    outputs = show_progress(outputs, len(lines))
    translations = [output.decode("utf-8", errors="replace") for output in outputs]
    seconds = time.monotonic() - started
    print_warnings(counts)
    results = translation_scores.score(
        translations, references, options.paper_bleu, options.confidence, tokenize
    )
    results["truncated"] = counts["truncated"]
    if options.glossary:
        results["terms"] = count_terms(runtime.glossary, sources, translations)
    print_results(options, results, len(sources), seconds)
    if options.at_least and results["bleu"]["score"] < options.at_least:
        raise SystemExit(
            f"BLEU must be at least {options.at_least}. "
            f"Received: {results['bleu']['score']:.2f}"
        )


def count_terms(
    glossary: Glossary, sources: list[str], translations: list[str]
) -> dict[str, int]:
    """Returns the number of terms, and of those whose target terms are there."""
    pairs = zip(sources, translations, strict=True)
    counts = np.array([glossary.count(*pair) for pair in pairs]).sum(axis=0)
    return dict(zip(("count", "translated"), counts.tolist(), strict=True))


def print_results(
    options: EvaluateOptions, results: dict, count: int, seconds: float
) -> None:
    """Prints scores, and the speed of `count` sentences."""
    speed = count / seconds
    if options.json:
        print(json.dumps({**results, "sentences_per_second": speed}, indent=2))
        return
    print("\n".join(translation_scores.describe_scores(results)))
    if terms := results.get("terms"):
        share = 100 * terms["translated"] / max(1, terms["count"])
        print(f"{'terms':18}{share:6.2f}  % of {terms['count']:,}")
    print(
        f"{'speed':18}{speed:6.1f}  sentences a second ({count:,} in {seconds:.1f} s)"
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
