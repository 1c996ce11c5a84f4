"""Resolves the options of a run: checks, defaults, numbers by corpus size."""

import dataclasses
from collections.abc import Iterable

from command_line.errors import UserError
from command_line.options import flag, replace_values, values_of
from keras_transformer import Preset
from keras_transformer.presets import find_preset
from train import options
from train.corpus_size_recipes import fill_in_recipe
from train.data.vocabulary import count_pieces, read_given_tokenizer
from train.loop import multi_worker
from train.loop.training_options import BATCH_TOKENS, INVERSE_SQRT
from train.options import CORPUS_SIZE_RECIPE, PAPER_RECIPE, Options
from train.run.early_stopping import ValidationOptions
from train.run.fine_tuning import FinishedRun

# Options of which one must come with another one.
NEEDED = {
    **dict.fromkeys(options.LANGUAGES, ("dataset", "mixture", *options.PAIRS)),
    "train_split": ("dataset",),
    "validation_split": ("dataset",),
    "sampling_temperature": ("mixture",),
}
EXCLUDED = {
    "init_from": ("tokenizer",),
    "dataset": (*options.PAIRS, *options.FILES),
    "mixture": (options.PAIRS[0], *options.FILES[:2]),
    "train_split": ("mixture",),  # A source of it names its own.
    "validation_size": ("dataset", "validation_pairs", "validation_source"),
}


def resolve(
    given: Options,
    start: FinishedRun | None = None,
    earlier: dict | None = None,
    num_pairs: int | None = None,
) -> tuple[Options, Preset]:
    """Checks the options, fills in the defaults and chooses the preset.

    Args:
        given: The options of the command line, over those of --config.
        start: The run of `--init-from`.
        earlier: Arguments of the run that is resumed, if there is one.
        num_pairs: Int, pairs of the training corpus, by which `--recipe
            corpus-size` chooses numbers. With `None` they are those of a large
            corpus, so that the options can be checked before it is read.

    Raises:
        UserError: If options exclude each other, or if the model does not have
            the shape of `start`.
    """
    check_corpus(given)
    found = find_obstacles(given)
    recipe = choose_recipe(given, earlier, found)
    preset = choose_preset(given, start)
    if recipe == CORPUS_SIZE_RECIPE:
        given = fill_in_recipe(given, preset, earlier or {}, num_pairs)
    if given.run.both_directions:
        refuse_obstacles("--both-directions", found)
    tokenizer = read_given_tokenizer(
        given.corpus.tokenizer, given.corpus.vocabulary_size
    )
    numbers = dataclasses.asdict(given.hyperparameters).items()
    preset = preset.replace(**{n: x for n, x in numbers if x is not None})
    given.training.check_schedule(preset)
    if start:
        asked = given.corpus
        start.check_shape(preset, asked.vocabulary_size, asked.max_length)
    given = dataclasses.replace(given, validation=resolve_validation(given.validation))
    is_set = given.corpus.dataset and not given.corpus.mixture
    filled = {
        **default_sizes(given, start, tokenizer),
        "train_split": "train" if is_set else None,
        "preset": None if start else options.PRESET,
        "batch_tokens": BATCH_TOKENS,
        "schedule": INVERSE_SQRT,
        "both_directions": False,
    }
    asked = values_of(given)
    filled = {name: x for name, x in filled.items() if asked[name] is None}
    return replace_values(given, recipe=recipe, **filled), preset


def default_sizes(
    given: Options, start: FinishedRun | None, tokenizer: bytes | None
) -> dict:
    size, length = options.VOCABULARY_SIZE, options.MAX_LENGTH
    if given.corpus.dataset == "demo":
        size = options.DEMO_VOCABULARY_SIZE
    if start:
        size = start.arguments["vocabulary_size"]
        length = start.arguments["max_length"]
    if tokenizer:
        size = count_pieces(tokenizer)
    return {"vocabulary_size": size, "max_length": length}


def choose_preset(given: Options, start: FinishedRun | None) -> Preset:
    """Returns the preset, without the numbers that options replace."""
    if given.run.preset is None and start:
        return start.preset
    return require_preset(given.run.preset or options.PRESET)


def require_preset(name: str) -> Preset:
    """Returns the preset of a name; refuses unknown names."""
    try:
        return find_preset(name)
    except ValueError as error:
        message = str(error).replace("`preset`", "--preset")
        raise UserError(message.replace("preset=", "--preset ")) from None


def choose_recipe(given: Options, earlier: dict | None, obstacles: list[str]) -> str:
    """Returns the recipe that is given, or the default.

    Numbers of training follow the size of the corpus by default for the presets
    tiny and small, but not for the demo, fine-tuning, on several machines, or for
    a run that began without.
    """
    recipe = given.run.recipe
    if recipe == CORPUS_SIZE_RECIPE:
        refuse_obstacles(f"--recipe {recipe}", obstacles)
    if recipe is not None:
        return recipe
    if obstacles or given.corpus.dataset == "demo":
        return PAPER_RECIPE
    if earlier is not None:
        return earlier.get("recipe") or PAPER_RECIPE
    small = given.run.preset in options.CORPUS_SIZE_PRESETS
    return CORPUS_SIZE_RECIPE if small else PAPER_RECIPE


def resolve_validation(validation: ValidationOptions) -> ValidationOptions:
    """Checks the score that decides, and fills in its default."""
    best_by, needed = validation.best_by, None
    if best_by and not validation.patience:
        needed = "--patience N"
    elif best_by in ("bleu", "chrf") and not validation.validate_bleu:
        needed = "--validate-bleu N"
    if needed:
        raise UserError(
            f"--best-by {best_by} needs {needed}. Received: --best-by {best_by} alone"
        )
    if validation.patience:
        best_by = best_by or "loss"
    return dataclasses.replace(validation, best_by=best_by)


def find_obstacles(given: Options) -> list[str]:
    """Returns what makes a run other than a new model on one machine."""
    obstacles = {
        "--init-from": given.run.init_from is not None,
        "TF_CONFIG": multi_worker.is_multi_worker(),
    }
    return [name for name, there in obstacles.items() if there]


def refuse_obstacles(option: str, obstacles: list[str]) -> None:
    if obstacles:
        raise UserError(
            f"{option} is for models that start from random weights "
            f"on one machine. Received: {obstacles[0]}"
        )


def check_corpus(given: Options) -> None:
    """Refuses a corpus that is given twice or incompletely."""
    corpus, asked = given.corpus, values_of(given)

    def flags(names: Iterable[str]) -> list[str]:
        return [flag(name) for name in names if asked[name]]

    places = zip(options.PAIRS, options.FILES[::2], options.FILES[1::2], strict=True)
    for pairs, *sides in places:
        found, texts = flags([pairs, *sides]), [flag(side) for side in sides]
        is_training = pairs == options.PAIRS[0]
        allowed = [[flag(pairs)], texts]
        if corpus.holds_out and not is_training:
            allowed.append([])
        elsewhere = corpus.dataset or (corpus.mixture and is_training)
        if not elsewhere and found not in allowed:
            raise UserError(
                f"a run needs --dataset NAME, {flag(pairs)} FILE, or both "
                f"{' and '.join(texts)}. Received: {', '.join(found) or 'neither'}"
            )
    for name, others in NEEDED.items():
        if asked[name] and not flags(others):
            raise UserError(
                f"{flag(name)} needs {' or '.join(map(flag, others))}. "
                "Received: it alone"
            )
    for name, others in EXCLUDED.items():
        if asked[name] and (found := flags(others)):
            raise UserError(
                f"{flag(name)} must come without {', '.join(map(flag, others))}. "
                f"Received: {', '.join(found)}"
            )
