"""Exports a trained model: strings in, strings out.

As a SavedModel, for TF Serving, or as a CTranslate2 directory.
"""

import argparse
import pathlib

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from export.bundle import saved_model
from export.bundle import server_files
from export.bundle import write
from export.ctranslate2 import directory
from export.model.options import MAX_BEAM_SIZE
from export.model.options import MAX_EXTRA_LENGTH
from export.model.options import MAX_LENGTH_PENALTY
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


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m export",
        description=__doc__,
    )
    path = {"type": pathlib.Path, "required": True}
    parser.add_argument("--run-dir", **path, help="folder of a finished run")
    parser.add_argument(
        "--export-dir", **path, help="folder for the versions of the export"
    )
    parser.add_argument(
        "--format",
        choices=PRECISIONS,
        default="saved_model",
        help="a directory for TF Serving, or for CTranslate2, which has a "
        "package to install and a search of its own (default: %(default)s)",
    )
    parser.add_argument(
        "--precision",
        choices=sorted({name for fit in PRECISIONS.values() for name in fit}),
        default="float32",
        help="type of weights and products: bfloat16 in a SavedModel, int8 in "
        "CTranslate2 (default: %(default)s)",
    )
    parser.add_argument(
        "--beam-size",
        type=int,
        help=f"beams a sentence {explain('beam_size')}",
    )
    parser.add_argument(
        "--length-penalty",
        type=float,
        help="0 prefers short translations, more prefers longer ones "
        f"{explain('length_penalty')}",
    )
    parser.add_argument(
        "--max-extra-length",
        type=int,
        help="tokens by which a translation may exceed its source "
        f"{explain('max_extra_length')}",
    )
    parser.add_argument(
        "--align-layer",
        type=int,
        metavar="LAYER",
        help="decoder layer whose attention aligns source and translation, "
        "from 0, or from the last if negative (default: the last but one)",
    )
    parser.add_argument(
        "--version",
        type=int,
        help="folder in --export-dir (default: the next number)",
    )
    parser.add_argument(
        "--model-name",
        help="what clients call the model (default: the name of --export-dir)",
    )
    parser.add_argument(
        "--xla",
        action="store_true",
        help="compile the default and the greedy signature by XLA: for servers "
        "that are started with --xla_cpu_compilation_enabled or "
        "--xla_gpu_compilation_enabled",
    )
    return parser.parse_args(argv)


def explain(name: str) -> str:
    defaults = [DEFAULTS[task][name] for task in (None, "parsing")]
    return "(default: {}; {} for parsing)".format(*defaults)


def fill_in(args: argparse.Namespace) -> None:
    """Sets what the command line leaves open to the paper's numbers."""
    run = saved_model.read_arguments(args.run_dir) or {}
    task = run.get("arguments", {}).get("task")
    for name, value in DEFAULTS[task].items():
        if getattr(args, name) is None:
            setattr(args, name, value)


def check(args: argparse.Namespace) -> None:
    """Refuses settings with which nothing could be found."""
    for name, wanted, good in (
        (
            "beam_size",
            f"between 1 and {MAX_BEAM_SIZE}",
            1 <= args.beam_size <= MAX_BEAM_SIZE,
        ),
        (
            "length_penalty",
            f"between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}",
            abs(args.length_penalty) <= MAX_LENGTH_PENALTY,
        ),
        (
            "max_extra_length",
            f"between 0 and {MAX_EXTRA_LENGTH:,}",
            0 <= args.max_extra_length <= MAX_EXTRA_LENGTH,
        ),
        ("version", "0 or more", args.version is None or args.version >= 0),
    ):
        if not good:
            raise UserError(
                f"--{name.replace('_', '-')} must be {wanted}. "
                f"Received: {getattr(args, name)}"
            )
    fitting = PRECISIONS[args.format]
    if args.precision not in fitting:
        raise UserError(
            f"--precision must be {' or '.join(fitting)} with --format "
            f"{args.format}. Received: {args.precision}"
        )
    for name in ("xla", "align_layer", "model_name"):
        given = getattr(args, name)
        is_given = given is not None and given is not False  # 0 is a layer.
        if is_given and args.format != "saved_model":
            raise UserError(
                f"--{name.replace('_', '-')} must be left out with --format "
                f"{args.format}. Received: {given}"
            )


def run(args: argparse.Namespace) -> None:
    fill_in(args)
    check(args)
    settings = SearchSettings(
        args.beam_size,
        args.length_penalty,
        args.max_extra_length,
        align_layer=args.align_layer,
        xla=args.xla,
    )
    if args.format == "ctranslate2":
        folder = directory.write_ctranslate2(
            *saved_model.read_run(args.run_dir),
            settings,
            args.precision,
            args.export_dir,
            args.version,
        )
    else:
        name = server_files.choose_name(args.export_dir, args.model_name)
        translator = saved_model.load_run(
            args.run_dir, settings, args.precision
        )
        folder = write.write_version(
            translator, args.run_dir, args.export_dir, name, args.version
        )
        print(f"{folder} serves; {args.export_dir / 'README.md'} says how")
    print(
        f"{folder} is written. Next:\n"
        f"  python -m export.translate --export-dir {args.export_dir}"
    )


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    with exit_on_user_error():
        run(args)


if __name__ == "__main__":
    main()
