"""Derives the corpus, the preset and defaults from the given options."""

import dataclasses
import pathlib

from command_line.bleu_tokenizer import choose_tokenizer, make_bleu
from command_line.errors import UserError
from command_line.options import replace_values
from keras_transformer import Preset
from keras_transformer.presets import find_preset
from train import options
from train.check_options import check_both_directions, check_corpus
from train.data.corpus import SIDES, Corpus, FilePairs, TreePairs
from train.data.corpus_loading import open_corpus, read_mixture
from train.data.derived_corpora import with_placeholders
from train.data.encoded_corpus import DigestCachedCorpus
from train.data.vocabulary import check_placeholders, check_vocabulary, count_pieces
from train.data.word_links import LinkedPairs
from train.loop.update_options import BATCH_TOKENS, DEFAULT_NUM_EPOCHS
from train.options import CorpusOptions, Options, RunOptions
from train.run import run_description
from train.run.best_checkpoints import BEAM_SIZE, ValidationOptions
from train.run.fine_tuning import FinishedRun
from train.run.run_description import COMPARED, RunDescription


def resolve(given: Options, start: FinishedRun | None) -> tuple[Options, Preset]:
    """Fills in defaults that depend on other options; chooses the preset.

    Args:
        given: The options of the command line.
        start: The run of `--init-from`.

    Raises:
        UserError: If options exclude each other, or if the model does not have
            the shape of `start`.
    """
    check_corpus(given)
    check_both_directions(given)
    tokenizer = check_vocabulary(
        given.vocabulary,
        given.corpus.vocabulary_size,
        given.run.init_from,
        given.corpus.task == options.PARSING,
    )
    if given.corpus.placeholders and tokenizer:
        check_placeholders([tokenizer], "--tokenizer", given.vocabulary.tokenizer)
    if given.corpus.placeholders and start:
        protos = filter(None, start.protos)
        wanted = "--init-from, or come with --extend-vocabulary"
        check_placeholders(protos, wanted, start.run_dir)
    validation = resolve_validation(given.validation)
    name = given.run.preset
    if name is None and not start:
        parsing = given.corpus.task == options.PARSING
        name = options.PARSING_PRESET if parsing else options.PRESET
    preset = start.preset if name is None else require_preset(name)
    numbers = dataclasses.asdict(given.hyperparameters).items()
    preset = preset.replace(**{n: x for n, x in numbers if x is not None})
    given.training.check_schedule(preset)
    if start:
        asked = given.corpus
        start.check_shape(preset, asked.vocabulary_size, asked.max_length)
    resolved = dataclasses.replace(
        given,
        corpus=resolve_corpus(given.corpus, start, tokenizer),
        run=resolve_run(given.run, name),
        training=dataclasses.replace(
            given.training, batch_tokens=given.training.batch_tokens or BATCH_TOKENS
        ),
        validation=validation,
    )
    return resolved, preset


def resolve_corpus(
    corpus: CorpusOptions, start: FinishedRun | None, tokenizer: bytes | None = None
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
    if tokenizer:
        size = count_pieces(tokenizer)
    return dataclasses.replace(
        corpus,
        # Runs that are older than the option have no name for a translation.
        task=corpus.task if parsing else None,
        vocabulary_size=(
            size if corpus.vocabulary_size is None else corpus.vocabulary_size
        ),
        max_length=length if corpus.max_length is None else corpus.max_length,
    )


def resolve_run(given: RunOptions, preset: str | None) -> RunOptions:
    """Returns the options with a preset; older runs name no recipe."""
    recipe = None if given.recipe == options.PAPER_RECIPE else given.recipe
    return dataclasses.replace(given, preset=preset, recipe=recipe)


def resolve_validation(validation: ValidationOptions) -> ValidationOptions:
    """Fills in defaults of the options of validation.

    Raises:
        UserError: If an option needs another one that is missing.
    """
    watches = validation.keep_best or validation.patience
    beam_size, best_by = validation.validation_beam_size, validation.best_by
    if best_by and not watches:
        raise UserError(
            "--best-by needs --keep-best N or --patience N. "
            f"Received: --best-by {best_by} alone"
        )
    if best_by in ("bleu", "chrf") and not validation.validate_bleu:
        raise UserError(
            f"--best-by {best_by} needs --validate-bleu N. "
            f"Received: --best-by {best_by} alone"
        )
    if watches:
        best_by = best_by or "loss"
    if validation.validate_bleu:
        beam_size = beam_size or BEAM_SIZE
    return dataclasses.replace(
        validation, validation_beam_size=beam_size, best_by=best_by
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
    validation = given.validation
    tokenize = validation.bleu_tokenize or choose_tokenizer(
        *[corpus.languages()[1] for corpus in reversed(pairs)]
    )
    if validation.validate_bleu != 0:
        make_bleu(tokenize)
    return replace_values(given, bleu_tokenize=tokenize)


def require_preset(name: str) -> Preset:
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
) -> tuple[RunDescription, bool]:
    """Returns the run's description, and whether the run is resumed."""
    arguments = given.arguments()
    if start and start.transformer.source_vocabulary_size is not None:
        size = start.transformer.source_vocabulary_size
        arguments["source_vocabulary_size"] = size
    description = run_description.describe(
        arguments,
        preset,
        *pairs,
        start.digests if start else given.vocabulary.digests(),
    )
    if start:
        description.decoding = start.decoding
    if given.corpus.alignments:
        # The head that `GuidedAlignment` trains.
        description.decoding = {**description.decoding, "align_head": 0}
    sources = [corpus.languages()[0] for corpus in reversed(pairs)]
    description.source_language = next(filter(None, sources), "")
    run_dir, repeated = given.run.run_dir, None
    steps_per_epoch = given.training.steps_per_epoch
    if given.run.from_arguments:
        repeated = options.read_description(given.run.from_arguments)
        if run_dir.name != options.BOTH_DIRECTIONS:  # It differs by design.
            print_differences(given.run.from_arguments, repeated, description)
            steps_per_epoch = steps_per_epoch or repeated.steps_per_epoch
    earlier = description.find_earlier(run_dir, options.NOT_COMPARED)
    description.steps_per_epoch = choose_steps_per_epoch(
        steps_per_epoch, preset, earlier
    )
    # The batches of a run that is resumed or repeated stay the same.
    same = earlier or repeated
    if same:
        description.row_multiple = same.row_multiple
    if earlier:
        description.resume(earlier, run_dir)
    return description, earlier is not None


def choose_steps_per_epoch(
    asked: int | None, preset: Preset, earlier: RunDescription | None
) -> int:
    """Returns the updates of an epoch; a resumed run keeps its number.

    Args:
        asked: Value of `--steps-per-epoch`, or that of a repeated run.
        preset: The preset, with the numbers that were replaced.
        earlier: The description of the run that is resumed.
    """
    default = max(100, preset.recipe.steps // DEFAULT_NUM_EPOCHS)
    chosen = asked or (earlier.steps_per_epoch if earlier else default)
    if earlier and not asked and chosen != default:
        print(
            f"note: an epoch stays at {chosen:,} updates. A new run of "
            f"{preset.recipe.steps:,} updates would use {default:,} "
            "(--steps-per-epoch), hence other checkpoints and another mean of "
            "them; the updates are the same"
        )
    return chosen


def load_corpus(corpus: CorpusOptions, cache: pathlib.Path) -> tuple[Corpus, Corpus]:
    """Returns the training and the validation pairs."""
    if corpus.task == options.PARSING:
        paths = [getattr(corpus, name) for name in options.TREES]
        return tuple(
            DigestCachedCorpus(TreePairs(path), [path], cache) for path in paths
        )
    training = (
        read_mixture(
            corpus.mixture,
            cache,
            corpus.source_language,
            corpus.data_dir,
            corpus.drop_invalid,
        )
        if corpus.mixture
        else open_split(corpus, "train", cache)
    )
    pairs = training, open_split(corpus, "validation", cache)
    return tuple(map(with_placeholders, pairs)) if corpus.placeholders else pairs


def open_split(corpus: CorpusOptions, split: str, cache: pathlib.Path) -> Corpus:
    if corpus.dataset is None:
        files = [getattr(corpus, f"{split}_{side}") for side in SIDES]
        pairs = FilePairs(*files, corpus.drop_invalid)
        if corpus.alignments and split == "train":
            pairs = LinkedPairs(pairs, corpus.alignments)
            files = [*files, corpus.alignments]
        return DigestCachedCorpus(pairs, files, cache)
    return open_corpus(
        corpus.dataset,
        getattr(corpus, f"{split}_split") or split,
        cache,
        corpus.source_language,
        corpus.data_dir,
    )


def print_differences(
    path: pathlib.Path, repeated: RunDescription, description: RunDescription
) -> None:
    """Prints the differences between a run and the one that it repeats."""
    parts = (*COMPARED, "packages")
    found = repeated.compare(description, options.NOT_COMPARED, parts)
    print(f"repeats {path} " + (f"but for {'; '.join(found)}" if found else "exactly"))
