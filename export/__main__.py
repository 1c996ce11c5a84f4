"""Exports a trained model: strings in, strings out.

As a SavedModel, for TF Serving, or as a CTranslate2 directory.
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.options import add_options
from command_line.options import flag
from command_line.options import option
from command_line.options import read_options
from export.bundle.saved_model import load_run
from export.bundle.saved_model import read_arguments
from export.bundle.saved_model import read_run
from export.bundle.server_files import choose_name
from export.bundle.write import write_version
from export.ctranslate2.directory import write_ctranslate2
from export.model.request_checks import MAX_BEAM_SIZE
from export.model.request_checks import MAX_EXTRA_LENGTH
from export.model.request_checks import MAX_LENGTH_PENALTY
from export.model.search import SearchSettings

PRECISIONS = {
    "saved_model": ("float32", "bfloat16"),
    "ctranslate2": ("float32", "int8"),
}
# Sections 6.1 and 6.3.
DEFAULTS = {
    None: {"beam_size": 4, "length_penalty": 0.6, "max_extra_length": 50},
    "parsing": {
        "beam_size": 21,
        "length_penalty": 0.3,
        "max_extra_length": 300,
    },
}


def searching(name: str, help: str, kind: type):
    """Declares an option whose default depends on the run's task."""
    defaults = [DEFAULTS[task][name] for task in (None, "parsing")]
    help += " (default: {}; {} for parsing)".format(*defaults)
    return option(None, help, kind=kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What `python -m export` can be asked."""

    run_dir: pathlib.Path = option(
        help="folder of a finished run", kind=pathlib.Path
    )
    export_dir: pathlib.Path = option(
        help="folder for the versions of the export", kind=pathlib.Path
    )
    format: str = option(
        "saved_model",
        "a directory for TF Serving, or for CTranslate2, which has a package "
        "to install and a search of its own",
        choices=PRECISIONS,
    )
    precision: str = option(
        "float32",
        "type of weights and products: bfloat16 in a SavedModel, int8 in "
        "CTranslate2",
        choices=sorted({name for fit in PRECISIONS.values() for name in fit}),
    )
    beam_size: int | None = searching("beam_size", "beams a sentence", int)
    length_penalty: float | None = searching(
        "length_penalty",
        "0 prefers short translations, more prefers longer ones",
        float,
    )
    max_extra_length: int | None = searching(
        "max_extra_length",
        "tokens by which a translation may exceed its source",
        int,
    )
    align_layer: int | None = option(
        None,
        "decoder layer whose attention aligns source and translation, from 0, "
        "or from the last if negative (default: the last but one)",
        kind=int,
        metavar="LAYER",
    )
    version: int | None = option(
        None, "folder in --export-dir (default: the next number)", kind=int
    )
    model_name: str | None = option(
        None, "what clients call the model (default: the name of --export-dir)"
    )


def parse_options(argv: list[str] | None = None) -> ExportOptions:
    parser = argparse.ArgumentParser(
        prog="python -m export",
        description=__doc__,
    )
    add_options(parser, ExportOptions)
    return read_options(parser.parse_args(argv), ExportOptions)


def fill_in(options: ExportOptions) -> ExportOptions:
    """Sets what the command line leaves open to the paper's numbers."""
    run = read_arguments(options.run_dir) or {}
    defaults = DEFAULTS[run.get("arguments", {}).get("task")]
    return dataclasses.replace(
        options,
        **{
            name: value
            for name, value in defaults.items()
            if getattr(options, name) is None
        },
    )


def check(options: ExportOptions) -> None:
    """Refuses options with which nothing could be found, or written."""
    for name, wanted, good in (
        (
            "beam_size",
            f"between 1 and {MAX_BEAM_SIZE}",
            1 <= options.beam_size <= MAX_BEAM_SIZE,
        ),
        (
            "length_penalty",
            f"between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}",
            abs(options.length_penalty) <= MAX_LENGTH_PENALTY,
        ),
        (
            "max_extra_length",
            f"between 0 and {MAX_EXTRA_LENGTH:,}",
            0 <= options.max_extra_length <= MAX_EXTRA_LENGTH,
        ),
        (
            "version",
            "0 or more",
            options.version is None or options.version >= 0,
        ),
        (
            "precision",
            f"{' or '.join(PRECISIONS[options.format])} with --format "
            f"{options.format}",
            options.precision in PRECISIONS[options.format],
        ),
    ):
        if not good:
            raise UserError(
                f"{flag(name)} must be {wanted}. "
                f"Received: {getattr(options, name)}"
            )
    if options.format == "saved_model":
        return
    for name in ("align_layer", "model_name"):
        given = getattr(options, name)
        if given is not None:  # 0 is a layer.
            raise UserError(
                f"{flag(name)} must be left out with --format "
                f"{options.format}. Received: {given}"
            )


def run(options: ExportOptions) -> None:
    options = fill_in(options)
    check(options)
    run_dir, export_dir = options.run_dir, options.export_dir
    settings = SearchSettings(
        options.beam_size,
        options.length_penalty,
        options.max_extra_length,
        align_layer=options.align_layer,
    )
    if options.format == "ctranslate2":
        folder = write_ctranslate2(
            *read_run(run_dir),
            settings,
            options.precision,
            export_dir,
            options.version,
        )
    else:
        name = choose_name(export_dir, options.model_name)
        translator = load_run(run_dir, settings, options.precision)
        folder = write_version(
            translator, run_dir, export_dir, name, options.version
        )
        print(f"{folder} serves; {export_dir / 'README.md'} says how")
    print(
        f"{folder} is written. Next:\n"
        f"  python -m export.translate --export-dir {export_dir}"
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
