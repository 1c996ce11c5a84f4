"""Derives the corpus, the preset and defaults from the given options."""

import dataclasses
import pathlib

import sentencepiece

from command_line.bleu import choose_tokenizer
from command_line.bleu import make_bleu
from command_line.errors import UserError
from command_line.options import flag
from command_line.options import values_of
from keras_transformer import Preset
from keras_transformer.presets import find_preset
from keras_transformer.text.placeholders import PLACEHOLDERS
from train import options
from train.data.bucketing import ROW_MULTIPLE
from train.data.corpus import Corpus
from train.data.corpus import FilePairs
from train.data.datasets import open_dataset
from train.data.datasets import read_mixture
from train.data.encoded_corpus import Remembered
from train.data.encoding import SIDES
from train.data.placeholder_pairs import with_placeholders
from train.data.tree_pairs import TreePairs
from train.loop.update_options import ROUNDS
from train.options import CorpusOptions
from train.options import Options
from train.run import run_folder
from train.run.best_checkpoints import BEAM_SIZE
from train.run.best_checkpoints import Quality
from train.run.fine_tuning import FinishedRun
from train.run.resume import carry_on


def resolve(
    given: Options, start: FinishedRun | None
) -> tuple[Options, Preset]:
    """Fills in defaults that depend on other options; chooses the preset.

    Args:
        given: The options of the command line.
        start: The run of `--init-from`.

    Raises:
        UserError: If options exclude each other, or if the model does not have
            the shape of `start`.
    """
    check_corpus(given)
    if start and given.corpus.placeholders:
        check_placeholders(start)
    quality = resolve_quality(given.quality)
    name = given.run.preset
    if name is None and not start:
        parsing = given.corpus.task == options.PARSING
        name = options.PARSING_PRESET if parsing else options.PRESET
    preset = start.preset if name is None else look_up(name)
    numbers = dataclasses.asdict(given.numbers).items()
    preset = preset.replace(**{n: x for n, x in numbers if x is not None})
    if start:
        asked = given.corpus
        start.check_shape(preset, asked.vocabulary_size, asked.max_length)
    resolved = dataclasses.replace(
        given,
        corpus=resolve_corpus(given.corpus, start),
        run=dataclasses.replace(given.run, preset=name),
        quality=quality,
    )
    return resolved, preset


def check_corpus(given: Options) -> None:
    """Refuses a corpus that is given twice or incompletely."""
    corpus, asked = given.corpus, values_of(given)

    def flags(names: tuple[str, ...]) -> list[str]:
        return [flag(name) for name in names if asked[name]]

    trees = flags(options.TREES)
    if corpus.task == options.PARSING:
        others = ("dataset", *options.FILES, "mixture", *options.OF_SETS)
        bleu = ("validate_bleu", "validation_beam_size", "bleu_tokenize")
        check_parsing(trees, flags((*others, "placeholders", *bleu)))
        return
    if trees:
        raise UserError(
            f"{trees[0]} needs --task {options.PARSING}. "
            f"Received: {trees[0]} alone"
        )
    check_files(corpus, flags(options.FILES))
    of_sets = flags(options.OF_SETS)
    if of_sets and not corpus.dataset and not corpus.mixture:
        raise UserError(
            f"{', '.join(map(flag, options.OF_SETS))} are of --dataset. "
            f"Received: {', '.join(of_sets)} and files"
        )
    if corpus.train_split and corpus.mixture:
        raise UserError(
            'a source of --mixture must name its own "split". '
            f"Received: --train-split {corpus.train_split}"
        )
    if corpus.validation_split and not corpus.dataset:
        raise UserError(
            "--validation-split must come with --dataset. Received: "
            f"--validation-split {corpus.validation_split} and files"
        )


def check_placeholders(start: FinishedRun) -> None:
    """Refuses `--placeholders` with a vocabulary that lacks them."""
    for proto in filter(None, start.protos):
        pieces = sentencepiece.SentencePieceProcessor(model_proto=proto)
        missing = [
            piece
            for piece in PLACEHOLDERS
            if pieces.piece_to_id(piece) == pieces.unk_id()
        ]
        if missing:
            raise UserError(
                "--placeholders must be those of the vocabulary of "
                "--init-from, or come with --extend-vocabulary. "
                f"Received: {start.run_dir} without {', '.join(missing)}"
            )


def check_parsing(trees: list[str], others: list[str]) -> None:
    """Refuses options that exclude `--task parsing`."""
    wanted = [flag(name) for name in options.TREES]
    if others or trees != wanted:
        raise UserError(
            f"--task {options.PARSING} must come with {' and '.join(wanted)}, "
            "and without other corpora, placeholders and the options of BLEU. "
            f"Received: {', '.join(trees + others) or 'none of them'}"
        )


def check_files(corpus: CorpusOptions, given: list[str]) -> None:
    """Refuses missing text files, and files beside a data set."""
    files = options.FILES[2:] if corpus.mixture else options.FILES
    wanted = [flag(name) for name in files]
    if corpus.dataset is None and given != wanted:
        raise UserError(
            f"the corpus must be --dataset NAME, or all of {', '.join(wanted)}"
            f"{' with --mixture' if corpus.mixture else ''}. "
            f"Received: {', '.join(given) or 'neither'}"
        )
    if corpus.dataset and given:
        raise UserError(
            "the corpus must be --dataset or files, not both. "
            f"Received: --dataset {corpus.dataset} and {', '.join(given)}"
        )


def resolve_corpus(
    corpus: CorpusOptions, start: FinishedRun | None
) -> CorpusOptions:
    """Fills in task, vocabulary and length."""
    parsing = corpus.task == options.PARSING
    size, length = options.VOCABULARY_SIZE, options.MAX_LENGTH
    if parsing:
        size = options.PARSING_VOCABULARY_SIZE
        length = options.PARSING_MAX_LENGTH
    elif corpus.dataset == "demo":
        size = options.DEMO_VOCABULARY_SIZE
    if start:
        size = start.arguments["vocabulary_size"]
        length = start.arguments["max_length"]
    return dataclasses.replace(
        corpus,
        # Runs that are older than the option have no name for a translation.
        task=corpus.task if parsing else None,
        vocabulary_size=(
            size if corpus.vocabulary_size is None else corpus.vocabulary_size
        ),
        max_length=length if corpus.max_length is None else corpus.max_length,
    )


def resolve_quality(quality: Quality) -> Quality:
    """Fills in defaults of the options of validation.

    Raises:
        UserError: If an option needs another one that is missing.
    """
    watches = quality.keep_best or quality.patience
    beam_size, best_by = quality.validation_beam_size, quality.best_by
    if best_by and not watches:
        raise UserError(
            "--best-by needs --keep-best N or --patience N. "
            f"Received: --best-by {best_by} alone"
        )
    if best_by in ("bleu", "chrf") and not quality.validate_bleu:
        raise UserError(
            f"--best-by {best_by} needs --validate-bleu N. "
            f"Received: --best-by {best_by} alone"
        )
    if watches:
        best_by = best_by or "loss"
    if quality.validate_bleu:
        beam_size = beam_size or BEAM_SIZE
    return dataclasses.replace(
        quality, validation_beam_size=beam_size, best_by=best_by
    )


def resolve_tokenizer(given: Options, pairs: tuple[Corpus, Corpus]) -> Options:
    """Fills in BLEU's tokenizer, which depends on the target language.

    Args:
        given: The options.
        pairs: The training and the validation corpus.

    Raises:
        UserError: If BLEU is requested and its tokenizer is not installed.
    """
    if given.corpus.task == options.PARSING:
        return given
    quality = given.quality
    tokenize = quality.bleu_tokenize or choose_tokenizer(
        *[corpus.languages()[1] for corpus in reversed(pairs)]
    )
    if quality.validate_bleu != 0:
        make_bleu(tokenize)
    quality = dataclasses.replace(quality, bleu_tokenize=tokenize)
    return dataclasses.replace(given, quality=quality)


def look_up(name: str) -> Preset:
    """Returns the preset of a name; refuses unknown names."""
    try:
        return find_preset(name)
    except ValueError as error:
        message = str(error).replace("`preset`", "--preset")
        raise UserError(message.replace("preset=", "--preset ")) from None


def describe_run(
    given: Options,
    preset: Preset,
    pairs: tuple[Corpus, Corpus],
    start: FinishedRun | None,
) -> tuple[dict, bool]:
    """Returns the run's description and that of the existing run, if any."""
    arguments = given.arguments()
    if start and start.transformer.source_vocabulary_size is not None:
        size = start.transformer.source_vocabulary_size
        arguments["source_vocabulary_size"] = size
    description = run_folder.describe(
        arguments, preset, *pairs, start.digests if start else None
    )
    if start and start.decoding:
        description["decoding"] = start.decoding
    if given.run.from_arguments:
        say_what_differs(given.run.from_arguments, description)
    known = run_folder.find(
        given.run.run_dir, description, options.NOT_COMPARED
    )
    description["steps_per_epoch"] = choose_round_steps(
        given.training.steps_per_epoch, preset, known
    )
    description["row_multiple"] = find_row_multiple(given, known)
    description["best_since"] = 0
    sources = [corpus.languages()[0] for corpus in reversed(pairs)]
    description["source_language"] = next(filter(None, sources), "")
    if known:
        carry_on(given.run.run_dir, known, description)
    return description, known is not None


def choose_round_steps(
    asked: int | None, preset: Preset, known: dict | None
) -> int:
    """Returns the updates of an epoch; a resumed run keeps its number.

    Args:
        asked: Value of `--steps-per-epoch`.
        preset: The preset, with the numbers that were replaced.
        known: The description of the run that is resumed.
    """
    default = max(100, preset.recipe.steps // ROUNDS)
    chosen = asked or (known["steps_per_epoch"] if known else default)
    if known and not asked and chosen != default:
        print(
            f"note: an epoch stays at {chosen:,} updates. A new run of "
            f"{preset.recipe.steps:,} updates would use {default:,} "
            "(--steps-per-epoch), hence other checkpoints and another mean of "
            "them; the updates are the same"
        )
    return chosen


def find_row_multiple(given: Options, known: dict | None) -> int | None:
    """Returns the row multiple of the run that is resumed or repeated.

    So its batches stay the same. A new run has none yet, since the multiple
    depends on the devices.

    Args:
        given: The options.
        known: The description of the run that is resumed.
    """
    if known is None and given.run.from_arguments:
        known = options.read_description(given.run.from_arguments)
    return None if known is None else known.get("row_multiple", ROW_MULTIPLE)


def load_corpus(
    corpus: CorpusOptions, cache: pathlib.Path
) -> tuple[Corpus, Corpus]:
    """Returns the training and the validation pairs."""
    if corpus.task == options.PARSING:
        paths = [getattr(corpus, name) for name in options.TREES]
        return tuple(
            Remembered(TreePairs(path), [path], cache) for path in paths
        )
    training = (
        read_mixture(
            corpus.mixture, cache, corpus.source_language, corpus.data_dir
        )
        if corpus.mixture
        else open_split(corpus, "train", cache)
    )
    pairs = training, open_split(corpus, "validation", cache)
    return (
        tuple(map(with_placeholders, pairs)) if corpus.placeholders else pairs
    )


def open_split(
    corpus: CorpusOptions, split: str, cache: pathlib.Path
) -> Corpus:
    if corpus.dataset is None:
        files = [getattr(corpus, f"{split}_{side}") for side in SIDES]
        return Remembered(FilePairs(*files), files, cache)
    return open_dataset(
        corpus.dataset,
        getattr(corpus, f"{split}_split") or split,
        cache,
        corpus.source_language,
        corpus.data_dir,
    )


def say_what_differs(path: pathlib.Path, description: dict) -> None:
    """Prints the differences between a run and the one that it repeats."""
    found = run_folder.differences(
        options.read_description(path),
        description,
        ("arguments", "preset", "corpus", "init", "packages"),
        options.NOT_COMPARED,
    )
    print(
        f"repeats {path} "
        + (f"but for {'; '.join(found)}" if found else "exactly")
    )
