"""Samples translations of lines, for `translate --sample`.

The seed of a line is computed from its number in the file. So a run is
reproducible, and a sample depends only on the text and the number of its line.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from command_line.errors import UserError
from command_line.options import flag, option
from export.model.request_validation import CHECKS
from translate.runtime.runtime import Runtime
from translate.runtime.signature_arrays import check_outputs, strings


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    sample: bool = option(
        False,
        "sample each translation instead of searching for the "
        "best, as for back-translation",
    )
    temperature: float = option(
        1.0, "by which logits are divided: below 1, less is surprising", float
    )
    top_k: int = option(
        0, "sample among this number of most probable tokens; 0: among all", int
    )
    top_p: float = option(
        1.0, "sample among the most probable tokens with this total probability", float
    )
    seed: int = option(
        0, "line n, counted from 1, is sampled with this seed plus n", int
    )

    def __post_init__(self):
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name, default in defaults.items():
            value = getattr(self, name)
            if not self.sample and value != default:
                raise UserError(f"{flag(name)} needs --sample. Received: {value}")
            wanted, is_good = CHECKS.get(name, ("", lambda _: True))
            if not is_good(value):
                raise UserError(f"{flag(name)} must be {wanted}. Received: {value}")


def make_sampler(runtime: Runtime, options: SamplingOptions) -> Callable:
    """Returns a function from lines and their numbers to sampled outputs.

    Raises:
        UserError: If the model lacks the signature `sample`.
    """
    runtime.require("sample")

    def sample(lines: list[bytes], numbers: list[int]) -> dict[str, np.ndarray]:
        rows = len(lines)
        seeds = np.array(numbers, np.int64) + options.seed % 2**32
        outputs = runtime.ask(
            "sample",
            {
                "text": strings(lines),
                "temperature": np.full(rows, options.temperature, np.float32),
                "top_k": np.full(rows, options.top_k, np.int32),
                "top_p": np.full(rows, options.top_p, np.float32),
                "seed": seeds.astype(np.int32),  # The lower 32 bits.
            },
        )
        return check_outputs(outputs, rows)

    return sample
