"""Options of `python -m train`; each is declared once.

Groups of options that one function takes are declared beside that function. A
tag of an option says how a resumed run treats it. One that is `"not recorded"`,
such as a path, may change. Of a `"digested"` one, the digest of its file is
compared. One that is `"not compared"` may change, or is covered by the numbers
of the preset.
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import UserError
from command_line.options import (
    add_options,
    option,
    option_names_tagged,
    parse_or_show_examples,
    part,
    positive,
    read_options,
    values_of,
)
from keras_transformer import PRESETS
from train.data.vocabulary import VocabularyOptions
from train.loop.update_options import UpdateOptions
from train.run.early_stopping import ValidationOptions
from train.run.run_description import RunDescription

EXAMPLES = """
python -m train --dataset demo --preset tiny --run-dir runs/demo
    learns from the embedded English-Spanish sentences.
python -m train --preset tiny --run-dir runs/mine \\
    --train-source train.en --train-target train.de \\
    --validation-source valid.en --validation-target valid.de
    learns from text files, one sentence a line. The same command resumes.
python -m export --run-dir runs/mine --export-dir exports/mine
    makes a SavedModel of the run.
"""
TRANSLATION, PARSING = "translation", "parsing"
DEMO_VOCABULARY_SIZE = 1_500
PARSING_VOCABULARY_SIZE = 16_000  # Section 6.3.
VOCABULARY_SIZE = 8_000
MAX_LENGTH = 256
PARSING_MAX_LENGTH = 512  # A tree has more symbols than its sentence words.
PRESET = "base"
PARSING_PRESET = "parsing"
PAPER_RECIPE, CORPUS_SIZE_RECIPE = "paper", "corpus-size"
# Presets whose numbers of training follow the size of the corpus by default.
CORPUS_SIZE_PRESETS = "tiny", "small"

# Folder, in that of a run, of the run in both directions before it.
BOTH_DIRECTIONS = "both-directions"

PATH = {"kind": pathlib.Path, "metavar": "FILE"}
TEXT_FILE = {
    **PATH,
    "help": "UTF-8, one sentence a line, may be gzip",
    "tags": ("text file", "digested"),
}
PAIR_FILE = {
    **PATH,
    "help": "pairs of --source-language and --target-language: .tmx, .tsv, .csv, "
    ".jsonl, each may be gzip, .parquet, or .zip of OPUS",
    "tags": ("pair file", "digested"),
}
TREE_FILE = {
    **PATH,
    "help": f"with --task {PARSING}: bracketed trees, UTF-8, may be gzip",
    "tags": ("tree file", "digested"),
}


@dataclasses.dataclass(frozen=True)
class CorpusOptions:
    """The text that a run learns from."""

    task: str | None = option(
        None,
        "sentences to sentences, or to their trees (Section 6.3; default: "
        f"{TRANSLATION})",
        choices=[TRANSLATION, PARSING],
    )
    train_trees: pathlib.Path | None = option(None, **TREE_FILE)
    validation_trees: pathlib.Path | None = option(None, **TREE_FILE)
    dataset: str | None = option(
        None,
        "demo, the embedded English-Spanish one, a translation set of TensorFlow "
        "Datasets: tfds:wmt14_translate/de-en, or of Hugging Face or a folder: "
        "hf:OWNER/NAME, /CONFIG and @REVISION may follow",
        metavar="NAME",
    )
    train_pairs: pathlib.Path | None = option(None, **PAIR_FILE)
    validation_pairs: pathlib.Path | None = option(None, **PAIR_FILE)
    train_source: pathlib.Path | None = option(None, **TEXT_FILE)
    train_target: pathlib.Path | None = option(None, **TEXT_FILE)
    validation_source: pathlib.Path | None = option(None, **TEXT_FILE)
    validation_target: pathlib.Path | None = option(None, **TEXT_FILE)
    alignments: pathlib.Path | None = option(
        None,
        "links between the words of each training pair, which one head of "
        "attention learns; a line is such as 0-0 1-2 (source-target, counted "
        "from 0 between blanks; Pharaoh's format)",
        **PATH,
        tags=("digested",),
    )
    mixture: pathlib.Path | None = option(
        None,
        "JSON list of training sources and their weights; the validation set "
        "comes from --dataset or the validation files",
        **PATH,
        tags=("digested",),
    )
    source_language: str | None = option(
        None,
        "code in a file of pairs or a set (default: the first of a tfds: set), or "
        "number of a column of a .tsv or .csv file",
        metavar="LANGUAGE",
        tags=("of a set",),
    )
    target_language: str | None = option(
        None,
        "likewise (default: the other one of a tfds: set)",
        metavar="LANGUAGE",
        tags=("of a set",),
    )
    train_split: str | None = option(
        None,
        "of a set, or a part such as train[99%%:] (default: train)",
        metavar="SPLIT",
        tags=("of a set",),
    )
    validation_split: str | None = option(
        None,
        "of a set, or a part such as train[99%%:] (default: validation)",
        metavar="SPLIT",
        tags=("of a set", "digested"),
    )
    data_dir: pathlib.Path | None = option(
        None,
        "folder of prepared sets (default: the package's)",
        kind=pathlib.Path,
        tags=("not recorded",),
    )
    vocabulary_size: int | None = option(
        None,
        f"subwords of both languages together (default: "
        f"{VOCABULARY_SIZE}; {DEMO_VOCABULARY_SIZE} for the demo, "
        f"{PARSING_VOCABULARY_SIZE} for parsing)",
        kind=int,
    )
    max_length: int | None = option(
        None,
        "longest side of a pair, in tokens; longer pairs are dropped "
        f"(default: {MAX_LENGTH}; {PARSING_MAX_LENGTH} for parsing)",
        kind=positive(int),
    )
    drop_invalid: bool = option(
        False,
        "drop pairs of text files with a line that is not UTF-8, and count "
        "them; without it, all such lines are listed",
        tags=("not compared",),
    )
    placeholders: bool = option(
        False,
        "in every other pair, what both sides share of addresses, variables "
        "such as {0}, and numbers with units is one of ten subwords of the "
        "vocabulary; `translate --format` puts it back",
    )
    cache_dir: pathlib.Path | None = option(
        None,
        "folder for encoded text that several runs may share (default: "
        "encoded/ in the run folder)",
        kind=pathlib.Path,
        tags=("not recorded",),
    )

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of source and target."""
        return self.source_language, self.target_language


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Run folder, devices, preset and the model to start from."""

    run_dir: pathlib.Path = option(
        help="folder for everything that is written",
        kind=pathlib.Path,
        tags=("not recorded",),
    )
    preset: str | None = option(
        None,
        f"one of {', '.join(PRESETS)} (Table 3, Section 6.3, and some of "
        f"ours; default: {PRESET}, {PARSING_PRESET} for parsing, or that of "
        "--init-from)",
        metavar="NAME",
        tags=("not compared",),
    )
    recipe: str | None = option(
        None,
        f"numbers of training that no option gives: {PAPER_RECIPE}, those of "
        f"the paper and the preset; {CORPUS_SIZE_RECIPE}, vocabulary, batch, "
        "warm-up, dropout and others by the number of pairs (default: "
        f"{CORPUS_SIZE_RECIPE} for the presets "
        f"{' and '.join(CORPUS_SIZE_PRESETS)}, but for the demo)",
        choices=[PAPER_RECIPE, CORPUS_SIZE_RECIPE],
    )
    devices: list[str] | None = option(
        None,
        "such as GPU:0 GPU:1 (default: all GPUs, else the CPU)",
        nargs="+",
        metavar="DEVICE",
        tags=("not recorded",),
    )
    deterministic: bool = option(
        False,
        "let a GPU, too, give the same bits each time, at some cost; a CPU "
        "does so without it",
    )
    from_arguments: pathlib.Path | None = option(
        None,
        "repeat the run whose arguments.json this is; options beside it "
        "replace its own",
        **PATH,
        tags=("not recorded",),
    )
    init_from: pathlib.Path | None = option(
        None,
        "start from that run's model.keras and tokenizer (fine-tuning)",
        kind=pathlib.Path,
        metavar="RUN_DIR",
        tags=("digested",),
    )
    both_directions: bool | None = option(
        None,
        "train first on the pairs of both directions, in "
        f"RUN_DIR/{BOTH_DIRECTIONS} and for half as many updates, then from "
        "that model in the one direction (BiT; default: as the recipe says)",
        kind=bool,
    )
    extend_vocabulary: pathlib.Path | None = option(
        None,
        "subwords to add to the vocabulary of --init-from, one a line; ▁ "
        "stands for a blank",
        **PATH,
        tags=("digested",),
    )


HYPERPARAMETER_HELP = {
    "num_layers": "layers of each stack, N",
    "hidden_dim": "features of a position, d_model",
    "intermediate_dim": "inner features of the feed-forward network, d_ff",
    "num_heads": "attention heads, h",
    "key_dim": "features of a head's queries and keys, d_k",
    "value_dim": "features of a head's values, d_v",
    "dropout": "share of the features dropped in training, P_drop",
    "attention_dropout": "share of the attention weights dropped in training",
    "feed_forward_dropout": "share of the inner features of the feed-forward "
    "network dropped in training",
    "positions": "position vectors, sine or learned",
    "norm": "layer normalization after or before a sub-layer, post or pre",
    "decoder_layers": "layers of the decoder, if not as many as the encoder's",
    "activation": "of the feed-forward network: relu, gelu or swish",
    "max_wavelength": "longest wavelength of the sines, in positions / 2π",
    "norm_epsilon": "added to the variance in layer normalization",
    "position_offset": "index of the first position in the sines",
    "decoder_mixer": "attention, or ssru, a recurrence, in the decoder",
    "label_smoothing": "probability of the wrong tokens together",
    "steps": "updates",
    "warmup_steps": "updates in which the learning rate rises",
}


def make_hyperparameter_options() -> type:
    """Makes the dataclass of options that replace numbers of a preset."""
    fields = []
    for name, value in PRESETS["base"].hyperparameters().items():
        if isinstance(value, bool):  # Converted models have them.
            continue
        kind = int if value is None else type(value)
        updates = name in ("steps", "warmup_steps")
        declared = option(
            None,
            HYPERPARAMETER_HELP[name] + ("" if value is None else f" (base: {value})"),
            kind=positive(int) if updates else kind,
            metavar=kind.__name__,
            tags=("not compared",),
        )
        fields.append((name, kind | None, declared))
    return dataclasses.make_dataclass("HyperparameterOptions", fields, frozen=True)


HyperparameterOptions = make_hyperparameter_options()


@dataclasses.dataclass(frozen=True)
class Options:
    """All options of the command."""

    corpus: CorpusOptions = part("corpus")
    vocabulary: VocabularyOptions = part("vocabulary")
    run: RunOptions = part("run")
    training: UpdateOptions = part("training")
    validation: ValidationOptions = part("validation")
    hyperparameters: HyperparameterOptions = part(
        "model", "each replaces a number of the preset"
    )

    @property
    def cache(self) -> pathlib.Path:
        """Folder for encoded text."""
        return self.corpus.cache_dir or self.run.run_dir / "encoded"

    def arguments(self) -> dict:
        """Returns the options for `arguments.json`, without paths."""
        return {
            name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in values_of(self).items()
            if name not in UNRECORDED
        }


UNRECORDED = option_names_tagged(Options, "not recorded")
DIGESTED = option_names_tagged(Options, "digested")
NOT_COMPARED = (*DIGESTED, *option_names_tagged(Options, "not compared"))
FILES = option_names_tagged(Options, "text file")
PAIRS = option_names_tagged(Options, "pair file")
TREES = option_names_tagged(Options, "tree file")
TFDS_OPTIONS = option_names_tagged(Options, "of a set")
LINK_OPTIONS = ("alignments", "alignment_weight")
LANGUAGES = ("source_language", "target_language")
# If the command line has an option, these options of the file are ignored.
SUPERSEDED_OPTIONS = {
    "dataset": (*FILES, *PAIRS, *LINK_OPTIONS, "bleu_tokenize"),
    "mixture": (*FILES[:2], PAIRS[0], *LINK_OPTIONS, "train_split"),
    **dict.fromkeys(
        FILES[:2],
        ("dataset", "mixture", PAIRS[0], *LINK_OPTIONS, "train_split", *LANGUAGES),
    ),
    **dict.fromkeys(
        FILES[2:], ("dataset", PAIRS[1], "bleu_tokenize", "validation_split")
    ),
    PAIRS[0]: ("dataset", "mixture", *FILES[:2], *LINK_OPTIONS, "train_split"),
    PAIRS[1]: ("dataset", *FILES[2:], "bleu_tokenize", "validation_split"),
    "init_from": ("tokenizer", "symbols"),
    "tokenizer": ("symbols", "vocabulary_size"),
    "train_trees": (
        *("dataset", "mixture", *LINK_OPTIONS, *FILES, *PAIRS, *TFDS_OPTIONS),
    ),
}


def parse_options(
    argv: list[str] | None = None, description: str | None = None
) -> Options:
    """Parses a command line, with --from-arguments for its defaults."""
    parser = argparse.ArgumentParser(prog="python -m train", description=description)
    add_options(parser, Options)
    args = parse_or_show_examples(parser, argv, EXAMPLES)
    given = read_options(args, Options)
    path = given.run.from_arguments
    if path is None:
        return given
    recorded = RunDescription.load(path).arguments
    parser.set_defaults(**choose_defaults(recorded, values_of(given)))
    return read_options(parser.parse_args(argv), Options)


def choose_defaults(recorded: dict, given: dict) -> dict:
    """Returns the recorded options that the given ones leave in place."""
    defaults = {**recorded}
    defaults.pop("source_vocabulary_size", None)  # That of --init-from.
    unknown = defaults.keys() - given.keys()
    if unknown:
        raise UserError(
            "--from-arguments must name options of this command. Received: "
            f"{', '.join(sorted(unknown))}"
        )
    for name, others in SUPERSEDED_OPTIONS.items():
        if given[name]:
            for other in others:
                defaults.pop(other, None)
    if given["dataset"] and not defaults.get("mixture"):
        defaults.pop("drop_invalid", None)  # It is of text files.
    return defaults
