"""Writes an HTML report on how a model translates a sentence.

Attention of every layer and head, alignment, confidence, and the search. The
file needs no network.
"""

import dataclasses
import pathlib

from command_line.errors import exit_on_user_error
from command_line.options import option, parse_command
from export.bundle.versions import EXPORT_DIR
from translate.loading import LanguageOptions, choose_languages, load_export
from translate.report.explanation_page import SIGNATURES, describe_translation, render


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExplainOptions(LanguageOptions):
    export_dir: pathlib.Path = option(**EXPORT_DIR)
    text: str = option(help="sentence to translate")
    output: pathlib.Path = option(
        help="HTML file to write", kind=pathlib.Path, metavar="FILE"
    )


def run(options: ExplainOptions) -> None:
    runtime = choose_languages(load_export(options.export_dir), options)
    runtime.require(*SIGNATURES)
    # Python represents bytes that are not UTF-8 as surrogates.
    text = options.text.encode("utf-8", "surrogateescape")
    data = describe_translation(runtime.ask_one, text)
    options.output.write_text(render(data), encoding="utf-8")
    print(f"{options.output} is written. Open it in a browser")


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("translate.explain", __doc__, ExplainOptions, argv))


if __name__ == "__main__":
    main()
