"""Numbers of training by the size of the corpus (`--recipe corpus-size`)."""

import dataclasses
import math

from command_line.options import flag, replace_values, values_of
from keras_transformer import Preset
from train.options import PAPER_RECIPE, Options

# A warm-up takes at most this share of the updates.
WARMUP_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class CorpusSizeRecipe:
    """Numbers of training for corpora of a size; options replace them.

    With few pairs, the paper's normalization after each sub-layer needs many
    updates until the decoder attends to the source; before each sub-layer it
    needs few.
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
    CorpusSizeRecipe(math.inf, 8_000, 25_000, 2_000, 0.1, False),
)


def fill_in_recipe(
    given: Options, preset: Preset, earlier: dict, num_pairs: int | None
) -> Options:
    """Fills in the numbers of a recipe for the options that are not given."""
    size = math.inf if num_pairs is None else num_pairs
    recipe = next((r for r in RECIPES if size < r.below), RECIPES[-1])
    steps = given.hyperparameters.steps or preset.recipe.steps
    chosen = dataclasses.asdict(recipe)
    # A run that becomes longer keeps its warm-up, and its beginning.
    chosen["warmup_steps"] = earlier.get("warmup_steps") or max(
        1, min(recipe.warmup_steps, int(WARMUP_SHARE * steps))
    )
    if earlier:
        chosen["both_directions"] = bool(earlier.get("both_directions"))
    if given.corpus.tokenizer is not None:
        del chosen["vocabulary_size"]
    missing = {name for name, x in values_of(given).items() if x is None}
    return replace_values(given, **{n: x for n, x in chosen.items() if n in missing})


def describe_recipe(given: Options, resolved: Options, num_pairs: int) -> str:
    """Returns the text of the numbers that the recipe chose."""
    before, after = values_of(given), values_of(resolved)
    names = [f.name for f in dataclasses.fields(CorpusSizeRecipe) if f.name in before]
    if given.corpus.tokenizer is not None:
        names.remove("vocabulary_size")
    filled = []
    for name in names:
        if before[name] is None and isinstance(after[name], bool):
            filled.append(flag(name if after[name] else f"no_{name}"))
        elif before[name] is None:
            filled.append(f"{flag(name)} {after[name]}")
    if not filled:
        return ""
    return (
        f"for {num_pairs:,} pairs: {' '.join(filled)} "
        f"(--recipe {PAPER_RECIPE}: the numbers of the preset)"
    )
