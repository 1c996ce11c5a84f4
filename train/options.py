"""Options of `python -m train`; each is declared once.

Groups of options that one function takes are declared beside that function. A
tag of an option says how a resumed run treats it. One that is `"not recorded"`,
such as a path, may change. Of a `"digested"` one, the digest of its file is
compared. One that is `"not compared"` may change, or is covered by the numbers
of the preset.
"""

import dataclasses
import pathlib
import sys

from command_line.config_file import format_config, read_config
from command_line.options import (
    CommandParser,
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
from train.data.held_out import MAX_VALIDATION_SIZE, VALIDATION_SHARE
from train.hyperparameter_options import HyperparameterOptions
from train.loop.training_options import TrainingOptions
from train.run.early_stopping import ValidationOptions

EXAMPLES = """
python -m train --dataset demo --preset tiny --run-dir runs/demo
    learns from the embedded English-Spanish sentences.
python -m train --preset tiny --run-dir runs/mine \\
    --train-source all.en --train-target all.de
    learns from text files, one sentence a line. The same command resumes.
python -m export --run-dir runs/mine --export-dir exports/mine
    makes a SavedModel of the run.
"""
DEMO_VOCABULARY_SIZE = 1_500
VOCABULARY_SIZE = 8_000
MAX_LENGTH = 256
PRESET = "base"
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
    ".jsonl, .json, each may be gzip, .parquet, or .zip of OPUS",
    "tags": ("pair file", "digested"),
}


@dataclasses.dataclass(frozen=True)
class CorpusOptions:
    """The text that a run learns from."""

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
    validation_size: int | None = option(
        None,
        "without validation files, training pairs that are held out: those with "
        "the smallest hashes of --seed and source (default: "
        f"{100 // VALIDATION_SHARE} %% of the pairs, at most {MAX_VALIDATION_SIZE})",
        kind=positive(int),
        metavar="PAIRS",
    )
    mixture: pathlib.Path | None = option(
        None,
        "JSON list of training sources with weights, languages and, unless "
        "--dataset or other options name them, validation files",
        **PATH,
        tags=("digested",),
    )
    sampling_temperature: float | None = option(
        None,
        "of N pairs of a source of the mixture, a pass has a share proportional to "
        "the weight times N^(1 / T): with 5, small sources occur more often "
        "(default: 1)",
        kind=positive(float),
        metavar="T",
    )
    source_language: str | None = option(
        None,
        "code in a file of pairs or a set (default: the first of a tfds: set), or "
        "number of a column of a .tsv or .csv file",
        metavar="LANGUAGE",
    )
    target_language: str | None = option(
        None, "likewise (default: the other one of a tfds: set)", metavar="LANGUAGE"
    )
    train_split: str | None = option(
        None,
        "of a set, or a part such as train[99%%:] (default: train)",
        metavar="SPLIT",
    )
    validation_split: str | None = option(
        None,
        "of a set, or a part such as train[99%%:] (default: validation)",
        metavar="SPLIT",
        tags=("digested",),
    )
    vocabulary_size: int | None = option(
        None,
        f"subwords of both languages together (default: "
        f"{VOCABULARY_SIZE}; {DEMO_VOCABULARY_SIZE} for the demo)",
        kind=int,
    )
    tokenizer: pathlib.Path | None = option(
        None,
        "a SentencePiece model (bpe or unigram) instead of one that is learned",
        **PATH,
        tags=("digested",),
    )
    max_length: int | None = option(
        None,
        "longest side of a pair, in tokens; longer pairs are dropped "
        f"(default: {MAX_LENGTH})",
        kind=positive(int),
    )
    allow_validation_in_training: bool = option(
        False,
        "train although all validation pairs are in training",
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
    def holds_out(self) -> bool:
        """Whether validation pairs that no file names are some of the training's."""
        given = self.dataset or self.validation_pairs or self.validation_source
        training = self.train_pairs or self.train_source or self.mixture
        return bool(training) and not given

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
        f"one of {', '.join(PRESETS)} (Table 3, and some of ours; default: "
        f"{PRESET}, or that of --init-from)",
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
    config: pathlib.Path | None = option(
        None,
        "options in YAML, such as `seed: 7`, or the arguments.json of a run, "
        "which is repeated; options of the command line replace its own",
        **PATH,
        tags=("not recorded",),
    )
    print_config: bool = option(
        False,
        "print the options that differ from their defaults, here and in --config, "
        "as YAML, and exit",
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


@dataclasses.dataclass(frozen=True)
class Options:
    """All options of the command."""

    corpus: CorpusOptions = part("corpus")
    run: RunOptions = part("run")
    training: TrainingOptions = part("training")
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
LANGUAGES = ("source_language", "target_language")


def parse_options(
    argv: list[str] | None = None, description: str | None = None
) -> Options:
    """Parses a command line, whose options replace those of --config."""
    argv = sys.argv[1:] if argv is None else argv
    parser = CommandParser(prog="python -m train", description=description)
    add_options(parser, Options)
    words = [*read_config(argv, Options), *argv]
    given = read_options(parse_or_show_examples(parser, words, EXAMPLES), Options)
    if given.run.print_config:
        print(format_config(given), end="")
        raise SystemExit
    return given
