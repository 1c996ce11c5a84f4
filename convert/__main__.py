"""Converts models of other systems to run folders, and run folders to theirs.

    python -m convert opus-mt --model-dir opus-mt-en-de --run-dir runs/en-de
    python -m convert marian --model model.npz --vocabulary source.spm \\
        --run-dir runs/en-pt
    python -m convert marian --model opus-2020-02-26.zip --run-dir runs/en-de
    python -m convert ctranslate2 --model-dir ct2-model --run-dir runs/en-fr \\
        --vocabulary source.spm target.spm
    python -m convert to-marian --run-dir runs/mine --model-dir opus-like
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import exit_on_user_error
from command_line.options import (
    add_options,
    option,
    parse_or_show_examples,
    read_options,
)
from convert import from_ctranslate2, from_hugging_face, from_marian, to_hugging_face
from convert.opus_download import unpack
from convert.run_folder_writer import Converted, check_new, write_run

PATH = {"kind": pathlib.Path}
RUN_DIR = {"help": "new folder of a run", **PATH}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OpusOptions:
    """`opus-mt`: a folder of Hugging Face's `MarianMTModel`."""

    model_dir: pathlib.Path = option(
        help="folder with config.json, model.safetensors, source.spm, "
        "target.spm and vocab.json",
        **PATH,
    )
    run_dir: pathlib.Path = option(**RUN_DIR)

    def run(self) -> None:
        check_new(self.run_dir)
        converted = from_hugging_face.read(self.model_dir)
        origin = {"format": "opus-mt", "model_dir": str(self.model_dir)}
        write_and_report(self.run_dir, converted, origin, self.model_dir)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarianOptions:
    """`marian`: a model of Marian, such as OPUS-MT's or a browser's."""

    model: pathlib.Path = option(
        help="model.npz, model.bin, or an OPUS-MT download, zip or folder",
        metavar="PATH",
        **PATH,
    )
    vocabulary: list[pathlib.Path] | None = option(
        None,
        help="SentencePiece models: one for both sides, or source and target; "
        "a download holds its own",
        nargs="+",
        metavar="FILE",
        **PATH,
    )
    run_dir: pathlib.Path = option(**RUN_DIR)

    def run(self) -> None:
        check_new(self.run_dir)
        origin = {"format": "marian", "model": str(self.model)}
        with unpack(self.model) as path:
            converted = from_marian.read(path, self.vocabulary)
            folder = path if path.is_dir() else path.parent
            write_and_report(self.run_dir, converted, origin, folder)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CTranslate2Options:
    """`ctranslate2`: a directory of CTranslate2's encoder-decoder models."""

    model_dir: pathlib.Path = option(
        help="folder with model.bin, config.json and vocabularies", **PATH
    )
    vocabulary: list[pathlib.Path] | None = option(
        None,
        help="SentencePiece models: one for both sides, or source and target; "
        "by default those that `python -m export` writes into the folder",
        nargs="+",
        metavar="FILE",
        **PATH,
    )
    run_dir: pathlib.Path = option(**RUN_DIR)

    def run(self) -> None:
        check_new(self.run_dir)
        converted = from_ctranslate2.read(self.model_dir, self.vocabulary)
        origin = {"format": "ctranslate2", "model_dir": str(self.model_dir)}
        write_and_report(self.run_dir, converted, origin, self.model_dir)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToMarianOptions:
    """`to-marian`: a run folder to a folder of `MarianMTModel`."""

    run_dir: pathlib.Path = option(help="folder of a finished run", **PATH)
    model_dir: pathlib.Path = option(
        help="new folder for MarianMTModel.from_pretrained", **PATH
    )

    def run(self) -> None:
        to_hugging_face.write_model(self.run_dir, self.model_dir)
        print(
            f"{self.model_dir} is written. Next:\n"
            "  transformers.MarianMTModel.from_pretrained("
            f"{str(self.model_dir)!r})"
        )


COMMANDS = {
    "opus-mt": OpusOptions,
    "marian": MarianOptions,
    "ctranslate2": CTranslate2Options,
    "to-marian": ToMarianOptions,
}


def write_and_report(
    run_dir: pathlib.Path, converted: Converted, origin: dict, license_dir: pathlib.Path
) -> None:
    """Prints the sizes, writes the run folder and prints the next command."""
    model = converted.model
    architecture = model.architecture
    print(
        f"read {model.count_params():,} parameters: "
        f"{architecture.num_layers} + {architecture.num_decoder_layers} layers "
        f"({architecture.decoder_mixer} in the decoder), width "
        f"{architecture.hidden_dim}, {architecture.num_heads} heads, "
        f"{architecture.intermediate_dim} inner features, "
        f"{architecture.activation}; vocabularies of "
        f"{model.source_vocabulary_size or model.vocabulary_size:,} and "
        f"{model.vocabulary_size:,} subwords; its search: {converted.decoding}"
    )
    write_run(run_dir, converted, origin, license_dir)
    print(
        f"{run_dir} is written. Next:\n"
        f"  python -m export --run-dir {run_dir} --export-dir EXPORT_DIR"
    )


def parse_options(argv: list[str] | None = None):
    parser = argparse.ArgumentParser(
        prog="python -m convert",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, cls in COMMANDS.items():
        command = commands.add_parser(name, description=cls.__doc__)
        add_options(command, cls)
    args = parse_or_show_examples(parser, argv, __doc__)
    return read_options(args, COMMANDS[args.command])


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        parse_options(argv).run()


if __name__ == "__main__":
    main()
