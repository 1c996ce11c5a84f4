"""Translates text, one sentence a line, with an exported model or a server.

Files may have any size: sentences are read in windows, sorted by length within
a window, and written in their original order. With --format, the input is a
document: the command splits it into sentences, translates these, and keeps the
rest.
"""

import collections
import contextlib
import dataclasses
import itertools
import pathlib
import sys
from collections.abc import Callable

from command_line.errors import InvalidDocumentError, UserError, exit_on_user_error
from command_line.options import option, parse_command, part
from command_line.progress import show_progress
from command_line.text_files import open_atomically, open_text, strip_byte_order_mark
from documents.formats import FORMAT_OF_SUFFIX
from translate.document_translation import (
    make_sentence_translator,
    pair_files,
    translate_document,
)
from translate.line_batching import print_warnings, translate_lines
from translate.loading import TranslatorOptions, load
from translate.sampling import Sampler, SamplingOptions
from translate.scoring.parse_scores import describe_repairs, repair_trees


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateOptions(TranslatorOptions):
    input: pathlib.Path | None = option(
        None,
        "text, plain or gzip (default: standard input, plain); or, with "
        "--format, a folder, of which all files are translated",
        kind=pathlib.Path,
    )
    output: pathlib.Path | None = option(
        None,
        "translations; until the last is written, in FILE.part (default: "
        "standard output)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    trees: bool = option(
        False,
        "of a parsing model: write trees in Penn Treebank form; malformed "
        "ones are repaired, and counted on standard error",
    )
    format: str | None = option(
        None,
        "the input is a document of this format: find its sentences, and keep "
        "lines, lists, blanks and fenced code; tags are put around the words that "
        "translate theirs, with the signature `align`",
        choices=list(FORMAT_OF_SUFFIX.values()),
    )
    sampling: SamplingOptions = part(
        "sampling", "needs an export with the signature `sample`"
    )


def check_options(options: TranslateOptions) -> None:
    """Refuses missing inputs, and outputs that would overwrite the input."""
    for name, given in (("trees", options.trees), ("sample", options.sampling.sample)):
        if given and options.format:
            raise UserError(f"--{name} must be left out with --format. Received: both")
    path, output = options.input, options.output
    if path and not path.exists():
        raise UserError(f"no such file: {path}")
    if path and output and output.exists() and output.samefile(path):
        raise UserError(
            f"--output must be another file than --input. Received: {output}"
        )


def run_documents(options: TranslateOptions) -> None:
    """Translates a document, or all documents of a folder."""
    translator = make_sentence_translator(load(options))

    def translate(file):
        yield translate_document(translator, file.read(), options.format)

    if not (options.input and options.input.is_dir()):
        translate_file(translate, options.input, options.output)
        return
    for source, target in pair_files(options.input, options.output):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            translate_file(translate, source, target)
            print(target, file=sys.stderr)
        except InvalidDocumentError as error:
            target.with_name(f"{target.name}.part").unlink(missing_ok=True)
            print(f"left out: {source}: {error}", file=sys.stderr)


def translate_file(
    translate: Callable, source: pathlib.Path | None, target: pathlib.Path | None
) -> None:
    """Translates a file with a function; `None` is standard input."""
    with contextlib.ExitStack() as stack:
        file, output = sys.stdin.buffer, sys.stdout.buffer
        if source:
            file = stack.enter_context(open_text(source))
        if target:
            output = stack.enter_context(open_atomically(target))
        for part in translate(file):
            output.write(part)
        output.flush()


def run_lines(options: TranslateOptions) -> None:
    runtime, translate = load(options), None
    if options.sampling.sample:
        translate = Sampler(runtime, options.sampling)
    counts, repairs = collections.Counter(), collections.Counter()

    def translate_all(file):
        source = strip_byte_order_mark(file)
        if options.trees:
            source, sentences = itertools.tee(source)
        translations = translate_lines(
            runtime, source, options.batch_tokens, counts, translate
        )
        if options.trees:
            translations = repair_trees(sentences, translations, repairs)
        for translation in show_progress(translations):
            yield translation + b"\n"

    translate_file(translate_all, options.input, options.output)
    print_warnings(counts)
    if options.trees:
        print(describe_repairs(repairs), file=sys.stderr)


def run(options: TranslateOptions) -> None:
    check_options(options)
    if options.format:
        run_documents(options)
    else:
        run_lines(options)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("translate", __doc__, TranslateOptions, argv))


if __name__ == "__main__":
    main()
