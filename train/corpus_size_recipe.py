"""Chooses numbers of training by the size of the corpus (--recipe)."""

import dataclasses
import pathlib

from command_line.errors import UserError
from command_line.options import flag, replace_values, values_of
from keras_transformer.presets import find_preset
from train import options
from train.check_options import find_obstacles
from train.options import CORPUS_SIZE_PRESETS, PAPER_RECIPE, Options
from train.run.run_description import RunDescription

# A warm-up takes at most this share of the updates.
WARMUP_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class CorpusSizeRecipe:
    """Numbers of training for corpora of a size; options replace them.

    With few pairs, the paper's normalization after each sub-layer needs many
    updates until the decoder attends to the source; before each sub-layer it
    needs few.

    Attributes:
        below: The corpora have fewer pairs than this.
        vocabulary_size: Number of subwords.
        batch_tokens: Positions of a side in an update.
        warmup_steps: Updates in which the learning rate rises.
        dropout: Share of the features dropped in training.
        both_directions: Whether a training in both directions comes first.
        norm: Position of layer normalization.
        schedule: Fall of the learning rate after the warm-up.
        patience: Scores of the validation set without a better one, after
            which training stops.
    """

    below: float
    vocabulary_size: int
    batch_tokens: int
    warmup_steps: int
    dropout: float
    both_directions: bool
    norm: str = "pre"
    schedule: str = "cosine"
    patience: int = 10


RECIPES = (
    CorpusSizeRecipe(15_000, 4_000, 2_048, 500, 0.3, True),
    CorpusSizeRecipe(60_000, 8_000, 4_096, 500, 0.3, True),
    CorpusSizeRecipe(250_000, 8_000, 8_192, 1_000, 0.2, False),
    CorpusSizeRecipe(float("inf"), 8_000, 25_000, 2_000, 0.1, False),
)


def uses_corpus_size(given: Options) -> bool:
    """Returns whether numbers of training follow the size of the corpus.

    They do with `--recipe corpus-size`, and by default for the presets tiny and
    small, but not for the demo, parsing, fine-tuning, on several machines, or
    for a run that began without a recipe.

    Raises:
        UserError: If the recipe is asked for where it cannot be used.
    """
    run, corpus = given.run, given.corpus
    found = find_obstacles(given)
    if run.recipe is not None:
        asked = run.recipe != PAPER_RECIPE
        if asked and found:
            raise UserError(
                f"--recipe {run.recipe} is for translation models that start "
                f"from random weights on one machine. Received: {found[0]}"
            )
        return asked
    if found or corpus.dataset == "demo":
        return False
    earlier = read_arguments(run.run_dir)
    if earlier is not None:
        return earlier.get("recipe") is not None
    return run.preset in CORPUS_SIZE_PRESETS


def read_arguments(run_dir: pathlib.Path) -> dict | None:
    """Returns the arguments of the run in a folder, or `None` without one."""
    path = run_dir / "arguments.json"
    return RunDescription.load(path).arguments if path.exists() else None


def describe_option(name: str, value: object) -> str:
    """Returns an option as one writes it on the command line."""
    if isinstance(value, bool):
        return flag(name if value else f"no_{name}")
    return f"{flag(name)} {value}"


def apply_recipe(given: Options, num_pairs: int) -> Options:
    """Fills in the options that are not given, and prints them.

    Args:
        given: The options of the command line, which `resolve` accepts.
        num_pairs: Int, pairs of the training corpus.
    """
    recipe = next(r for r in RECIPES if num_pairs < r.below)
    filled = choose_missing(given, recipe)
    if filled:
        print(
            f"for {num_pairs:,} pairs: "
            f"{' '.join(describe_option(*item) for item in filled.items())} "
            f"(--recipe {PAPER_RECIPE}: the numbers of the preset)"
        )
    return replace_values(given, **filled)


def fill_in_recipe(given: Options) -> Options:
    """Fills in the numbers for a large corpus, if they follow its size.

    With them `resolve` can check the options before the corpus is read.

    Raises:
        UserError: As `uses_corpus_size`.
    """
    if not uses_corpus_size(given):
        return given
    return replace_values(given, **choose_missing(given, RECIPES[-1]))


def choose_missing(given: Options, recipe: CorpusSizeRecipe) -> dict:
    """Returns the numbers of a recipe for the options that are not given."""
    preset = find_preset(given.run.preset or options.PRESET)
    steps = given.hyperparameters.steps or preset.recipe.steps
    chosen = dataclasses.asdict(recipe)
    # A run that becomes longer keeps its warm-up, and its beginning.
    run_dir = given.run.run_dir
    earlier = (
        read_arguments(run_dir)
        or read_arguments(run_dir / options.BOTH_DIRECTIONS)
        or {}
    )
    chosen["warmup_steps"] = earlier.get("warmup_steps") or max(
        1, min(recipe.warmup_steps, int(WARMUP_SHARE * steps))
    )
    if earlier:
        chosen["both_directions"] = bool(earlier.get("both_directions"))
    if given.vocabulary.tokenizer is not None:
        del chosen["vocabulary_size"]
    missing = {name for name, x in values_of(given).items() if x is None}
    return {name: x for name, x in chosen.items() if name in missing}
