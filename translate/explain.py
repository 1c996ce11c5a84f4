"""Writes an HTML report on how a model translates a sentence.

Attention of every layer and head, alignment, confidence, and the search. The
file needs no network.
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import exit_on_user_error
from command_line.options import add_options, option, read_options
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.versions import EXPORT_DIR, find_version
from translate.loading import load_export
from translate.report.explanation_page import SIGNATURES, describe_translation, render
from translate.runtime.runtime import Runtime


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    export_dir: pathlib.Path = option(**EXPORT_DIR)
    text: str = option(help="sentence to translate")
    output: pathlib.Path = option(
        help="HTML file to write", kind=pathlib.Path, metavar="FILE"
    )


def parse_options(argv: list[str] | None = None) -> ExplainOptions:
    parser = argparse.ArgumentParser(
        prog="python -m translate.explain", description=__doc__
    )
    add_options(parser, ExplainOptions)
    return read_options(parser.parse_args(argv), ExplainOptions)


def load(export_dir: pathlib.Path) -> Runtime:
    """Loads the newest version of an export.

    Raises:
        UserError: If there is no version, or it is damaged or lacks the
            signatures `explain` and `explain_beam`.
    """
    folder = find_version(export_dir, SAVED_MODEL)
    runtime = load_export(export_dir, int(folder.name))
    runtime.require(*SIGNATURES)
    return runtime


def run(options: ExplainOptions) -> None:
    runtime = load(options.export_dir)
    # Python represents bytes that are not UTF-8 as surrogates.
    text = options.text.encode("utf-8", "surrogateescape")
    data = describe_translation(runtime.ask_one, text)
    options.output.write_text(render(data), encoding="utf-8")
    print(f"{options.output} is written. Open it in a browser")


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
