"""What can be asked of an update (Sections 5.1, 5.3), as options too."""

import dataclasses
import math

from command_line.options import fraction
from command_line.options import option
from command_line.options import positive
from train.data.batches import BatchPlan

ROUNDS = 40
PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float16": "mixed_float16",
}


@dataclasses.dataclass(frozen=True)
class FitSettings:
    """How a model is fitted, beside what its preset says."""

    batch_tokens: int = option(
        25_000,
        "positions of a side in an update, over all devices (Section 5.1)",
        kind=positive(int),
    )
    round_steps: int | None = option(
        None,
        f"updates between validations and checkpoints (default: a {ROUNDS}th "
        "of all, 100 at least)",
        kind=positive(int),
        properties=("free",),
    )
    average: int = option(
        5,
        "checkpoints whose mean is the final model (Section 6.1)",
        kind=positive(int),
        metavar="N",
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
        "positions of a side that a device takes at once; a larger share of an "
        "update is taken in several turns (default: no limit)",
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

    def micro_batches(self, plan: BatchPlan, num_replicas: int) -> int:
        """Returns the number of micro-batches that make an update."""
        if self.max_tokens_per_replica is None:
            return 1
        return max(
            math.ceil(
                rows
                / (
                    num_replicas
                    * max(1, self.max_tokens_per_replica // max(lengths))
                )
            )
            for rows, *lengths in plan.shapes
        )
