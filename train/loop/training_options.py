"""Options of a training update (Sections 5.1, 5.3)."""

import dataclasses

import keras

from command_line.errors import UserError
from command_line.options import option, positive
from keras_transformer import Preset, TransformerSchedule, WarmupDecay
from keras_transformer.schedules import DECAYS
from train.data.encoded_pairs import EncodedPairs

BATCH_TOKENS = 25_000
DEFAULT_NUM_EPOCHS = 40
INVERSE_SQRT = "inverse-sqrt"
PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """Options of training that are not part of a preset."""

    batch_tokens: int | None = option(
        None,
        "positions of a side in an update, over all devices (default: "
        f"{BATCH_TOKENS}, Section 5.1)",
        kind=positive(int),
    )
    steps_per_epoch: int | None = option(
        None,
        "updates between checkpoints, which a run resumes from (default: a "
        f"{DEFAULT_NUM_EPOCHS}th of all, 100 at least)",
        kind=positive(int),
        tags=("not compared",),
    )
    average: int = option(
        5,
        "checkpoints whose mean is the final model (Section 6.1)",
        kind=positive(int),
        metavar="N",
        tags=("not compared",),
    )
    learning_rate_scale: float = option(
        1.0, "factor of the paper's learning rate (Section 5.3)", kind=positive(float)
    )
    schedule: str | None = option(
        None,
        "fall of the learning rate after the warm-up: with the inverse square "
        "root of the update, none, or to 0 after the last update (default: "
        f"{INVERSE_SQRT}, Section 5.3)",
        choices=[INVERSE_SQRT, *DECAYS],
    )
    precision: str = option(
        "float32",
        "of matrix products; weights, softmax and loss stay float32",
        choices=list(PRECISIONS),
    )
    max_tokens_per_replica: int | None = option(
        None,
        "maximum positions of a side that a device computes at once; a larger "
        "batch is split for gradient accumulation (default: no limit)",
        kind=positive(int),
        metavar="N",
        tags=("not compared",),
    )
    clip_norm: float | None = option(
        None,
        "shrink longer gradients to this norm (default: never)",
        kind=positive(float),
        metavar="NORM",
    )
    seed: int = option(0, "of weights, dropout and order", kind=int)

    def check_schedule(self, preset: Preset) -> None:
        """Refuses a learning rate that would fall within the warm-up."""
        recipe = preset.recipe
        if self.schedule in DECAYS and recipe.steps < recipe.warmup_steps:
            raise UserError(
                f"--schedule {self.schedule} needs --steps of at least "
                f"--warmup-steps, {recipe.warmup_steps}. "
                f"Received: --steps {recipe.steps}"
            )

    def make_schedule(
        self, preset: Preset
    ) -> keras.optimizers.schedules.LearningRateSchedule:
        """Makes the learning rate schedule for a preset's sizes and steps."""
        width, recipe = preset.architecture.hidden_dim, preset.recipe
        paper_peak = (width * recipe.warmup_steps) ** -0.5
        scale = self.learning_rate_scale
        if self.schedule not in DECAYS:
            return TransformerSchedule(width, recipe.warmup_steps, scale)
        return WarmupDecay(
            scale * paper_peak, recipe.warmup_steps, recipe.steps, self.schedule
        )

    def check_limit(self, corpora: list[EncodedPairs]) -> None:
        """Refuses a `--max-tokens-per-replica` below the longest sentence."""
        limit = self.max_tokens_per_replica
        if limit is None:
            return
        longest = max(
            int(ids.lengths.max())
            for pairs in corpora
            for ids in (pairs.sources, pairs.targets)
        )
        if limit < longest:
            raise UserError(
                "--max-tokens-per-replica must be at least as long as the "
                f"longest sentence, {longest} tokens; a lower --max-length "
                f"drops such. Received: --max-tokens-per-replica {limit}"
            )
