"""Exports a trained model as a SavedModel, for LiteRT or for CTranslate2.

The SavedModel takes strings and returns strings, in the stock TF Serving.
"""

import dataclasses
import pathlib
import re

from command_line.errors import UserError, exit_on_user_error
from command_line.options import (
    CommandParser,
    add_options,
    flag,
    natural,
    option,
    parse_or_show_examples,
    read_options,
)
from command_line.recorded_search_options import check_decoding
from export.bundle.run_loading import (
    load_run,
    read_arguments,
    read_languages,
    read_notes,
    read_run,
)
from export.bundle.server_config import choose_name
from export.bundle.write_version import write_version
from export.ctranslate2.model_directory import write_ctranslate2
from export.litert.model_directory import write_litert
from export.model.request_validation import CHECKS
from export.model.search import SearchSettings
from export.model.signature_inputs import DEFAULT_SIGNATURES, INPUTS
from text_processing.language_tags import LanguageTags

EXAMPLES = """
python -m export --run-dir runs/mine --export-dir exports/mine
    writes exports/mine/1, a SavedModel for TF Serving.
python -m export --run-dir runs/mine --export-dir exports/device \\
    --format litert --precision int8
    writes files for LiteRT, which translate without TensorFlow.
python -m translate --export-dir exports/mine < text.en > text.de
    translates with either of them.
"""
PRECISIONS = {
    "saved_model": ("float32", "bfloat16"),
    "litert": ("float32", "int8"),
    "ctranslate2": ("float32", "int8"),
}
RULES = ("no_repeat_ngram", "min_length")
ALIGNMENT = ("align_layer", "align_head")
SERVER_OPTIONS = ("model_name", "signatures")
# Those that other formats do not have.
LACKING = {
    "litert": SERVER_OPTIONS,
    "ctranslate2": (*SERVER_OPTIONS, *ALIGNMENT, *RULES),
}


def search_option(name: str, help: str, kind: type):
    """Declares an option whose default depends on the run."""
    default = getattr(SearchSettings, name)
    help += f" (default: {default}, or the value of a converted run)"
    return option(None, help, kind=kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    run_dir: list[pathlib.Path] = option(
        help="folder of a finished run; several times: an ensemble, whose "
        "probabilities are the means of the models'",
        kind=pathlib.Path,
        action="append",
    )
    export_dir: pathlib.Path = option(
        help="folder for the versions of the export", kind=pathlib.Path
    )
    format: str = option(
        "saved_model",
        "a directory for TF Serving; files for LiteRT, which are translated "
        "without TensorFlow; or a directory for CTranslate2, which has a "
        "search of its own",
        choices=PRECISIONS,
    )
    precision: str = option(
        "float32",
        "type of weights and products: bfloat16 in a SavedModel, int8 for "
        "LiteRT and CTranslate2",
        choices=sorted({name for fit in PRECISIONS.values() for name in fit}),
    )
    beam_size: int | None = search_option("beam_size", "beams a sentence", int)
    length_penalty: float | None = search_option(
        "length_penalty",
        "0 prefers short translations, more prefers longer ones",
        float,
    )
    max_extra_length: int | None = search_option(
        "max_extra_length", "tokens by which a translation may exceed its source", int
    )
    penalty_offset: float | None = search_option(
        "penalty_offset",
        "k of the penalty ((k + n) / (k + 1)) ** length_penalty of n tokens; "
        "0 makes it n ** length_penalty",
        float,
    )
    no_repeat_ngram: int = option(
        0, "length of the n-grams that a translation may not repeat; 0: no limit", int
    )
    min_length: int = option(0, "minimum number of tokens of a translation", int)
    align_layer: int | None = option(
        None,
        "decoder layer whose attention aligns source and translation, from 0, "
        "or from the last if negative (default: the last but one; of two, the "
        "last)",
        kind=int,
        metavar="LAYER",
    )
    align_head: int | None = option(
        None,
        "head of that layer which aligns (default: the mean over all)",
        kind=int,
        metavar="HEAD",
    )
    source_language: str | None = option(
        None,
        "ISO 639-1 code; its abbreviations do not end a sentence when "
        "documents are split (default: the language that the run recorded). Of a "
        "converted model of several languages: the only one of sources (default: "
        "each request names it)",
        metavar="CODE",
    )
    target_language: str | None = option(
        None,
        "of a model of several languages: the only one of translations (default: "
        "each request names it)",
        metavar="CODE",
    )
    signatures: list[str] | None = option(
        None,
        "signatures to export: all, or some of "
        f"{', '.join(INPUTS)} (default: all but sample, explain and explain_beam)",
        nargs="+",
        choices=("all", *INPUTS),
        metavar="NAME",
    )
    version: int | None = option(
        None, "folder in --export-dir (default: the next number)", kind=natural
    )
    model_name: str | None = option(
        None, "the model's name in requests (default: the name of --export-dir)"
    )


def parse_options(argv: list[str] | None = None) -> ExportOptions:
    parser = CommandParser(prog="python -m export", description=__doc__)
    add_options(parser, ExportOptions)
    args = parse_or_show_examples(parser, argv, EXAMPLES)
    return read_options(args, ExportOptions)


def choose_signatures(names: list[str] | None) -> tuple[str, ...]:
    """Returns the names of the signatures to export, with the default one."""
    if names is None:
        return DEFAULT_SIGNATURES
    if "all" in names:
        return tuple(INPUTS)
    return tuple(n for n in INPUTS if n in names or n == DEFAULT_SIGNATURES[0])


def fill_in_defaults(options: ExportOptions) -> ExportOptions:
    """Fills in the options that the command line does not give.

    The values come from the decoding options that the run recorded, as a
    converted run does, or else from the paper.
    """
    run_dir = options.run_dir[0]
    run = read_arguments(run_dir) or {}
    defaults = {
        **dataclasses.asdict(SearchSettings()),
        **check_decoding(run.get("decoding", {}), run_dir / "arguments.json"),
        "source_language": run.get("source_language") or "",
    }
    return dataclasses.replace(
        options,
        **{
            name: value
            for name, value in defaults.items()
            if getattr(options, name, value) is None
        },
    )


def check_options(options: ExportOptions) -> None:
    """Refuses values out of range and options that exclude each other."""
    fitting = PRECISIONS[options.format]
    words = f"{' or '.join(fitting)} with --format {options.format}"
    checks = {**CHECKS, "precision": (words, fitting.__contains__)}
    for name, (wanted, is_good) in checks.items():
        if hasattr(options, name) and not is_good(value := getattr(options, name)):
            raise UserError(f"{flag(name)} must be {wanted}. Received: {value}")
    if options.format == "saved_model":
        return
    if len(options.run_dir) > 1:
        raise UserError(
            f"--run-dir must be one folder with --format {options.format}. "
            f"Received: {len(options.run_dir)} folders"
        )
    for name in LACKING[options.format]:
        given = getattr(options, name)
        # 0 is a valid layer; for the other options it means "off".
        if given or (given is not None and name in ALIGNMENT):
            raise UserError(
                f"{flag(name)} must be left out with --format "
                f"{options.format}. Received: {given}"
            )


def write_saved_model(
    options: ExportOptions, settings: SearchSettings, languages: LanguageTags | None
) -> pathlib.Path:
    """Writes a SavedModel, prints what it is, and returns its folder."""
    export_dir = options.export_dir
    signatures = choose_signatures(options.signatures)
    name = choose_name(export_dir, options.model_name)
    translator = load_run(
        options.run_dir, settings, options.precision, signatures, languages
    )
    count = len(signatures)
    print(f"tracing {count} signatures, and writing samples", flush=True)
    folder = write_version(
        translator, options.run_dir, export_dir, name, options.version
    )
    print(f"{folder} serves; {export_dir / 'README.md'} says how")
    return folder


def run(options: ExportOptions) -> None:
    codes = options.source_language or "", options.target_language or ""
    languages = read_languages(options.run_dir, *codes)
    options = fill_in_defaults(options)
    check_options(options)
    run_dir, export_dir = options.run_dir[0], options.export_dir
    language = re.split("[-_]", options.source_language.lower())[0]
    names = {field.name for field in dataclasses.fields(SearchSettings)}
    given = {name: value for name, value in vars(options).items() if name in names}
    settings = SearchSettings(**{**given, "source_language": language})
    if options.format == "saved_model":
        folder = write_saved_model(options, settings, languages)
    else:
        arguments = settings, options.precision, export_dir, options.version, languages
        model = read_run(run_dir)
        if options.format == "litert":
            samples = read_notes(run_dir).get("samples", ())
            folder = write_litert(*model, *arguments, samples)
        else:
            folder = write_ctranslate2(*model, *arguments)
    inputs = languages.required_inputs() if languages else ()
    print(
        f"{folder} is written. Next:\n  python -m translate --export-dir {export_dir}",
        *(f"--{name.replace('_', '-')} CODE" for name in inputs),
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
