"""Converts models of other systems to run folders.

    python -m convert hugging-face --model-dir opus-mt-en-de --run-dir runs/en-de
    python -m convert marian --model model.npz --vocabulary source.spm \\
        --run-dir runs/en-pt
    python -m convert marian --model opus-2020-02-26.zip --run-dir runs/en-de
    python -m convert ctranslate2 --model-dir ct2-model --run-dir runs/en-fr \\
        --vocabulary source.spm target.spm
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import exit_on_user_error
from command_line.options import (
    CommandParser,
    add_options,
    option,
    parse_or_show_examples,
    read_options,
)
from convert import from_ctranslate2, from_hugging_face, from_marian
from convert.run_folder_writer import Converted, check_new, write_run

PATH = {"kind": pathlib.Path}
PATHS = {"nargs": "+", "metavar": "FILE", **PATH}
VOCABULARY = "SentencePiece models: one for both sides, or source and target"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceOptions:
    """`hugging-face`: a folder of OPUS-MT (Marian), M2M-100 or NLLB-200."""

    model_dir: pathlib.Path = option(
        help="folder with config.json, model.safetensors and the tokenizer's files: "
        "source.spm, target.spm and vocab.json, or sentencepiece.bpe.model",
        **PATH,
    )
    run_dir: pathlib.Path = option(help="new folder of a run", **PATH)

    def read(self) -> Converted:
        return from_hugging_face.read(self.model_dir)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarianOptions:
    """`marian`: a model of Marian, such as OPUS-MT's or a browser's."""

    model: pathlib.Path = option(
        help="model.npz, model.bin, or an OPUS-MT download, zip or folder",
        metavar="PATH",
        **PATH,
    )
    vocabulary: list[pathlib.Path] | None = option(
        None, help=f"{VOCABULARY}; a download of OPUS-MT holds its own", **PATHS
    )
    run_dir: pathlib.Path = option(help="new folder of a run", **PATH)

    def read(self) -> Converted:
        return from_marian.read(self.model, self.vocabulary)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CTranslate2Options:
    """`ctranslate2`: a directory of CTranslate2's encoder-decoder models."""

    model_dir: pathlib.Path = option(
        help="folder with model.bin, config.json and vocabularies", **PATH
    )
    vocabulary: list[pathlib.Path] = option(help=VOCABULARY, **PATHS)
    run_dir: pathlib.Path = option(help="new folder of a run", **PATH)

    def read(self) -> Converted:
        return from_ctranslate2.read(self.model_dir, self.vocabulary)


COMMANDS = {
    "hugging-face": HuggingFaceOptions,
    "marian": MarianOptions,
    "ctranslate2": CTranslate2Options,
}


def convert_to_run(command: str, options) -> None:
    """Reads a model, prints its sizes and the next command, and writes a run."""
    check_new(options.run_dir)
    converted = options.read()
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
    paths = {k: str(v) for k, v in vars(options).items() if k.startswith("model")}
    write_run(options.run_dir, converted, {"format": command, **paths})
    print(
        f"{options.run_dir} is written. Next:\n"
        f"  python -m export --run-dir {options.run_dir} --export-dir EXPORT_DIR"
    )


def main(argv: list[str] | None = None) -> None:
    parser = CommandParser(
        prog="python -m convert",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, cls in COMMANDS.items():
        add_options(commands.add_parser(name, description=cls.__doc__), cls)
    args = parse_or_show_examples(parser, argv, __doc__)
    options = read_options(args, COMMANDS[args.command])
    with exit_on_user_error():
        convert_to_run(args.command, options)


if __name__ == "__main__":
    main()
