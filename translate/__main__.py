"""Translates lines or documents with an exported model or a server.

Of lines, each is a sentence. There may be any number: they are read in windows,
sorted by length within a window, and written in their original order. A document
is split into sentences, which are translated; the rest is kept.
"""

import collections
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Iterator

from command_line.errors import InvalidDocumentError, UserError, exit_on_user_error
from command_line.options import option, parse_command, part
from command_line.progress import show_progress
from command_line.text_files import (
    check_lines,
    open_atomically,
    open_text,
    strip_byte_order_mark,
)
from documents.formats import FORMAT_OF_SUFFIX, find_format
from translate.document_translation import (
    make_sentence_translator,
    pair_files,
    translate_document,
)
from translate.line_batching import print_warnings, translate_lines
from translate.loading import TranslatorOptions, load
from translate.runtime.runtime import Runtime
from translate.sampling import SamplingOptions, make_sampler

LINES = "lines"  # Not documents: alignment of lines matters to corpora.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateOptions(TranslatorOptions):
    input: pathlib.Path | None = option(
        None,
        "a file, plain or gzip (default: standard input, plain), or a folder, of "
        "which all files are translated",
        kind=pathlib.Path,
    )
    output: pathlib.Path | None = option(
        None,
        "translations; until the last is written, in FILE.part (default: "
        "standard output)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    format: str | None = option(
        None,
        f"format of the input: {LINES}, of a sentence each, or that of a document "
        "(default: by the suffix, "
        f"{', '.join(s for s, f in FORMAT_OF_SUFFIX.items() if f != 'text')}; all "
        f"else, such as .txt and standard input, is {LINES}). The sentences of a "
        "document are found; lists, blanks and fenced code are kept; tags are put "
        "around the words that translate theirs, with the signature `align`",
        choices=[LINES, *dict.fromkeys(FORMAT_OF_SUFFIX.values())],
    )
    sampling: SamplingOptions = part(
        "sampling", "needs an export with the signature `sample`"
    )


def check_options(options: TranslateOptions) -> None:
    """Refuses missing inputs, and outputs that contradict or overwrite the input."""
    path, output = options.input, options.output
    if path and not path.exists():
        raise UserError(f"no such file: {path}")
    format = choose_format(options, path)
    kind = "a folder" if path and path.is_dir() else f"--format {format}"
    other = kind if kind != f"--format {LINES}" else options.glossary and "--glossary"
    if options.sampling.sample and other:
        raise UserError(f"--sample must be left out with {other}. Received: both")
    if path and output and output.exists() and output.samefile(path):
        raise UserError(
            f"--output must be another file than --input. Received: {output}"
        )
    if format == "docx" and not output and sys.stdout.isatty():
        raise UserError("a Word document needs --output. Received: a terminal")
    allowed = (None, format, find_format(path))
    if format == LINES:
        allowed += ("text",)
    if find_format(output) not in allowed:
        raise UserError(
            f"--output must have a suffix of --input's format, {format}; --format "
            f"names another. Received: {output}"
        )


def choose_format(options: TranslateOptions, path: pathlib.Path | None) -> str:
    """Returns the format of a file; `None` is standard input."""
    named = find_format(path)
    return options.format or (LINES if named in (None, "text") else named)


def run(options: TranslateOptions) -> None:
    check_options(options)
    runtime = load(options)
    if not (options.input and options.input.is_dir()):
        translate_file(options, runtime, options.input, options.output)
        return
    for source, target in pair_files(options.input, options.output):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            translate_file(options, runtime, source, target)
            print(target, file=sys.stderr)
        except InvalidDocumentError as error:
            target.with_name(f"{target.name}.part").unlink(missing_ok=True)
            print(f"left out: {error}", file=sys.stderr)


def translate_file(
    options: TranslateOptions,
    runtime: Runtime,
    source: pathlib.Path | None,
    target: pathlib.Path | None,
) -> None:
    """Translates a file in its format; `None` is standard input or output."""
    format, name = choose_format(options, source), source or "standard input"
    with contextlib.ExitStack() as stack:
        file, output = sys.stdin.buffer, sys.stdout.buffer
        if source:
            file = stack.enter_context(open_text(source))
        if target:
            output = stack.enter_context(open_atomically(target))
        if format == LINES:
            lines = check_lines(strip_byte_order_mark(file), name)
            output.writelines(translate_each_line(options, runtime, lines))
        else:
            translator = make_sentence_translator(runtime)
            output.write(translate_document(translator, file.read(), format, name))
        output.flush()


def translate_each_line(
    options: TranslateOptions, runtime: Runtime, lines: Iterator[bytes]
) -> Iterator[bytes]:
    """Yields the translation of each line, and prints warnings."""
    translate = None
    if options.sampling.sample:
        translate = make_sampler(runtime, options.sampling)
    counts = collections.Counter()
    translations = translate_lines(
        runtime, lines, options.batch_tokens, counts, translate
    )
    for translation in show_progress(translations):
        yield translation + b"\n"
    print_warnings(counts)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("translate", __doc__, TranslateOptions, argv))


if __name__ == "__main__":
    main()
