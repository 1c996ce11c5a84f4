"""Translates text, one sentence a line, with an exported model or a server.

Any size of file: sentences are read in windows, sorted by length within a
window, and written in their order.
"""

import argparse
import codecs
import collections
import contextlib
import dataclasses
import functools
import itertools
import pathlib
import sys
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.options import add_options
from command_line.options import one_of
from command_line.options import option
from command_line.options import part
from command_line.options import read_options
from export.bundle import saved_model
from export.bundle.layout import SAVED_MODEL
from export.bundle.server_files import BATCH_SIZES
from export.bundle.versions import EXPORT_DIR
from export.bundle.versions import find_version
from export.client import Client
from export.client import ClientOptions
from export.client import connect
from export.ctranslate2 import directory
from export.scoring.parses import describe_faults
from export.scoring.parses import mend_trees

WINDOW = 2048  # Lines that are sorted together.
BYTES_A_TOKEN = 4  # About what a piece of European text has.
# Of a request: what `batching_parameters.txt` lets a server take.
MAX_ROWS = BATCH_SIZES[-1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What translates: one of both."""

    export_dir: pathlib.Path | None = option(None, **EXPORT_DIR)
    server: str | None = option(
        None, "a running TF Serving", metavar="HOST:PORT"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslatorOptions:
    """What translates, and how much at a time.

    Raises:
        UserError: If that is nothing.
    """

    model: ModelOptions = one_of()
    client: ClientOptions = part("with --server")
    batch_tokens: int = option(
        1024, "source tokens at a time, one counted as four bytes", int
    )

    def __post_init__(self):
        if self.batch_tokens < 1:
            raise UserError(
                "--batch-tokens must be 1 or more. "
                f"Received: {self.batch_tokens}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateOptions(TranslatorOptions):
    """What `python -m export.translate` can be asked."""

    input: pathlib.Path | None = option(
        None, "text (default: standard input)", kind=pathlib.Path
    )
    output: pathlib.Path | None = option(
        None, "translations (default: standard output)", kind=pathlib.Path
    )
    trees: bool = option(
        False,
        "of a parsing model: write trees in Penn Treebank form; malformed "
        "ones are mended, and counted on standard error",
    )


def parse_options(argv: list[str] | None = None) -> TranslateOptions:
    parser = argparse.ArgumentParser(
        prog="python -m export.translate",
        description=__doc__,
    )
    add_options(parser, TranslateOptions)
    return read_options(parser.parse_args(argv), TranslateOptions)


def load(options: TranslatorOptions) -> Callable:
    """Returns a function that translates a batch."""
    if options.model.server:
        return connect(options.model.server, options.client)
    export_dir = options.model.export_dir
    folder = find_version(export_dir, SAVED_MODEL, directory.MODEL_FILE)
    if (folder / directory.MODEL_FILE).exists():
        return directory.load_translate(export_dir)
    return saved_model.load_translate(export_dir)


def translate_lines(
    translate: Callable,
    lines: Iterable[bytes],
    batch_tokens: int,
    counts: collections.Counter,
) -> Iterator[bytes]:
    """Translates sentences in bounded memory.

    Args:
        translate: What `load` returned.
        lines: Sentences, with or without line ends.
        batch_tokens: Int, source tokens at a time, padding included.
        counts: To it is added under `"lines"` how many sentences there were,
            and under `"truncated"` how many were cut at a limit of tokens,
            they or their translations.

    Yields:
        A translation for each sentence, in order, without line ends.
    """
    lines = iter(lines)
    if isinstance(translate, Client):
        max_rows, translate_all = MAX_ROWS, translate.map
    else:
        max_rows, translate_all = WINDOW, functools.partial(map, translate)
    while window := list(itertools.islice(lines, WINDOW)):
        window = [line.rstrip(b"\r\n") for line in window]
        translations = [b""] * len(window)
        batches = list(cut_batches(window, batch_tokens, max_rows))
        texts = ([window[i] for i in places] for places in batches)
        for places, outputs in zip(batches, translate_all(texts), strict=True):
            counts["lines"] += len(places)
            counts["truncated"] += int(outputs["truncated"].numpy().sum())
            for i, text in zip(
                places, outputs["translation"].numpy(), strict=True
            ):
                # A model may spell a line end in bytes; a line stays a line.
                translations[i] = b" ".join(text.splitlines())
        yield from translations


def cut_batches(
    lines: list[bytes], batch_tokens: int, max_rows: int = WINDOW
) -> Iterator[list[int]]:
    """Yields the places of lines of like length, a batch at a time."""
    batch = []
    for place in sorted(range(len(lines)), key=lambda i: len(lines[i])):
        # The line is the longest so far, so the others are padded to it.
        tokens = 1 + len(lines[place]) // BYTES_A_TOKEN
        too_long = tokens * (len(batch) + 1) > batch_tokens
        if batch and (too_long or len(batch) == max_rows):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def without_mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields lines, the first without a byte order mark."""
    lines = iter(lines)
    for first in itertools.islice(lines, 1):
        yield first.removeprefix(codecs.BOM_UTF8)
    yield from lines


def show_progress(translations: Iterable[bytes]) -> Iterator[bytes]:
    """Counts on the terminal; passes everything on."""
    if not sys.stderr.isatty():
        yield from translations
        return
    started = time.monotonic()
    for count, translation in enumerate(translations, start=1):
        yield translation
        seconds = time.monotonic() - started
        print(
            f"\r{count:,} sentences, {count / seconds:,.1f} a second",
            end="",
            file=sys.stderr,
        )
    print(file=sys.stderr)


def tell_truncated(counts: collections.Counter) -> None:
    """Says how many lines were cut, if any were."""
    if counts["truncated"]:
        print(
            f"{counts['truncated']:,} of {counts['lines']:,} lines were cut at "
            "the model's limit of tokens",
            file=sys.stderr,
        )


def check_output(options: TranslateOptions) -> None:
    if (
        options.input
        and options.output
        and options.output.exists()
        and options.output.samefile(options.input)
    ):
        raise UserError(
            "--output must be another file than --input. "
            f"Received: {options.output}"
        )


def run(options: TranslateOptions) -> None:
    with contextlib.ExitStack() as stack:
        source, output = sys.stdin.buffer, sys.stdout.buffer
        if options.input:
            source = stack.enter_context(options.input.open("rb"))
        check_output(options)
        source = without_mark(source)
        translate = load(options)
        if options.output:
            output = stack.enter_context(options.output.open("wb"))
        counts, faults = collections.Counter(), collections.Counter()
        if options.trees:
            source, sentences = itertools.tee(source)
        translations = translate_lines(
            translate, source, options.batch_tokens, counts
        )
        if options.trees:
            translations = mend_trees(sentences, translations, faults)
        for translation in show_progress(translations):
            output.write(translation + b"\n")
        output.flush()
    tell_truncated(counts)
    if options.trees:
        print(describe_faults(faults), file=sys.stderr)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
