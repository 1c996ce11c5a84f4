"""Translates text, one sentence a line, with an exported model or a server.

Any size of file: sentences are read in windows, sorted by length within a
window, and written in their order. With --documents, lines are text as people
write it: its sentences are translated, and all that stands between them stays.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import pathlib
import sys
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from command_line.errors import NotTextError
from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.options import add_options
from command_line.options import option
from command_line.options import part
from command_line.options import read_options
from command_line.text_files import open_text
from command_line.text_files import without_mark
from command_line.text_files import write_beside
from export.client import connect
from export.line_batching import tell_doubts
from export.line_batching import translate_lines
from export.loading import TranslatorOptions
from export.loading import load
from export.loading import load_documents
from export.markup.document_files import load_translator
from export.markup.document_files import translate_document
from export.markup.translate_markup import FORMATS
from export.sampling import Sampler
from export.sampling import SamplingOptions
from export.sampling import load_ask
from export.scoring.parse_scores import describe_faults
from export.scoring.parse_scores import mend_trees
from export.text_documents import pair_files
from export.text_documents import translate_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateOptions(TranslatorOptions):
    """What `python -m export.translate` can be asked."""

    input: pathlib.Path | None = option(
        None,
        "text, plain or gzip (default: standard input, plain); or, with "
        "--documents, a folder, of which all files are translated",
        kind=pathlib.Path,
    )
    output: pathlib.Path | None = option(
        None,
        "translations; until the last is written, in FILE.part (default: "
        "standard output)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    documents: bool = option(
        False,
        "the text is whole: find its sentences, and keep lines, lists, blanks "
        "and fenced code",
    )
    trees: bool = option(
        False,
        "of a parsing model: write trees in Penn Treebank form; malformed "
        "ones are mended, and counted on standard error",
    )
    format: str | None = option(
        None,
        "of documents: their tags go around the words that say the same, all "
        "but their text stays; needs the signature `align`",
        choices=FORMATS,
    )
    sampling: SamplingOptions = part(
        "drawing", "an export with the signature `sample` can"
    )


def parse_options(argv: list[str] | None = None) -> TranslateOptions:
    parser = argparse.ArgumentParser(
        prog="python -m export.translate",
        description=__doc__,
    )
    add_options(parser, TranslateOptions)
    return read_options(parser.parse_args(argv), TranslateOptions)


def load_sampler(options: TranslateOptions) -> Sampler:
    """Returns what draws translations."""
    if options.model.server:
        client = connect(options.model.server, options.client)
        return Sampler(client.ask, options.sampling, client)
    return Sampler(load_ask(options.model.export_dir), options.sampling)


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


def check_options(options: TranslateOptions) -> None:
    """Refuses what cannot be read, or would be written over."""
    for name, given in (
        ("trees", options.trees),
        ("sample", options.sampling.sample),
    ):
        for other in ("documents", "format"):
            if given and getattr(options, other):
                raise UserError(
                    f"--{name} must be left out with --{other}. Received: both"
                )
    if options.input and not options.input.exists():
        raise UserError(f"no such file: {options.input}")
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


def run_documents(options: TranslateOptions) -> None:
    """Translates a document, or all of a folder."""
    counts = collections.Counter()
    if options.format:
        translator = load_translator(load(options), options.model.export_dir)

        def translate(file):
            yield translate_document(translator, file.read(), options.format)
    else:
        ask = load_documents(options)

        def translate(file):
            return translate_text(ask, without_mark(file), counts)

    if options.input and options.input.is_dir():
        for source, target in pair_files(options.input, options.output):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                translate_file(translate, source, target)
                print(target, file=sys.stderr)
            except NotTextError as error:
                print(f"left out: {source}: {error}", file=sys.stderr)
    else:
        translate_file(translate, options.input, options.output)
    tell_doubts(counts, "pieces")


def translate_file(
    translate: Callable,
    source: pathlib.Path | None,
    target: pathlib.Path | None,
) -> None:
    """Writes what a function yields of a file; `None` is standard input."""
    with contextlib.ExitStack() as stack:
        file, output = sys.stdin.buffer, sys.stdout.buffer
        if source:
            file = stack.enter_context(open_text(source))
        if target:
            output = stack.enter_context(write_beside(target))
        for part in translate(file):
            output.write(part)
        output.flush()


def run_lines(options: TranslateOptions) -> None:
    """Translates a file line by line, in any of the ways but documents'."""
    drawn = options.sampling.sample
    translate = load_sampler(options) if drawn else load(options)
    counts, faults = collections.Counter(), collections.Counter()

    def translate_all(file):
        source = without_mark(file)
        if options.trees:
            source, sentences = itertools.tee(source)
        translations = translate_lines(
            translate, source, options.batch_tokens, counts
        )
        if options.trees:
            translations = mend_trees(sentences, translations, faults)
        for translation in show_progress(translations):
            yield translation + b"\n"

    translate_file(translate_all, options.input, options.output)
    tell_doubts(counts)
    if options.trees:
        print(describe_faults(faults), file=sys.stderr)


def run(options: TranslateOptions) -> None:
    check_options(options)
    if options.documents or options.format:
        run_documents(options)
    else:
        run_lines(options)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
