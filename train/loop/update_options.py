"""Options of a training update (Sections 5.1, 5.3)."""

import dataclasses

from command_line.errors import UserError
from command_line.options import fraction
from command_line.options import option
from command_line.options import positive
from train.data.vocabulary import EncodedPairs

DEFAULT_NUM_EPOCHS = 40
PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


@dataclasses.dataclass(frozen=True)
class UpdateOptions:
    """Options of training that are not part of a preset."""

    batch_tokens: int = option(
        25_000,
        "positions of a side in an update, over all devices (Section 5.1)",
        kind=positive(int),
    )
    steps_per_epoch: int | None = option(
        None,
        "updates between validations and checkpoints (default: a "
        f"{DEFAULT_NUM_EPOCHS}th of all, 100 at least)",
        kind=positive(int),
        properties=("free",),
    )
    average: int = option(
        5,
        "checkpoints whose mean is the final model (Section 6.1)",
        kind=positive(int),
        metavar="N",
        properties=("free",),
    )
    learning_rate_scale: float = option(
        1.0,
        "factor of the paper's learning rate (Section 5.3)",
        kind=positive(float),
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
        properties=("free",),
    )
    clip_norm: float | None = option(
        None,
        "shrink longer gradients to this norm (default: never)",
        kind=positive(float),
        metavar="NORM",
    )
    average_decay: float | None = option(
        None,
        "make the final model the exponential moving average of the weights, "
        "such as 0.999, instead of the mean of checkpoints",
        kind=fraction,
        metavar="DECAY",
    )
    seed: int = option(0, "of weights, dropout and order", kind=int)

    def check_limit(self, corpora: list[EncodedPairs]) -> None:
        """Refuses a `--max-tokens-per-replica` below the longest sentence.

        Args:
            corpora: The training corpus and the validation set.

        Raises:
            UserError: With the smallest sufficient limit.
        """
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
