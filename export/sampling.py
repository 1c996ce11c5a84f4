"""Draws translations of lines instead of searching the best ones.

Each line has a seed of its own, which its number in the file makes. So a run
can be repeated, and what a line gets depends on its text and its number alone.
"""

import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.options import flag
from command_line.options import option
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.model_loading import load_version
from export.bundle.versions import find_version
from export.client import Client
from export.client import check_outputs
from export.model.request_validation import CHECKS

SIGNATURE = "sample"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """How to draw, if at all.

    Raises:
        UserError: If it cannot be drawn so, or is not to be drawn.
    """

    sample: bool = option(
        False,
        "draw each translation by its probability instead of searching the "
        "best, as for back-translation",
    )
    temperature: float = option(
        1.0, "by which logits are divided: below 1, less is surprising", float
    )
    top_k: int = option(
        0, "draw from so many of the likeliest tokens; 0: from all", int
    )
    top_p: float = option(
        1.0, "draw from the likeliest tokens of this probability", float
    )
    seed: int = option(
        0, "what line n draws by is the seed plus n, from 1", int
    )

    def __post_init__(self):
        defaults = {
            field.name: field.default for field in dataclasses.fields(self)
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if not self.sample and value != default:
                raise UserError(
                    f"{flag(name)} needs --sample. Received: {value}"
                )
            wanted, is_good = CHECKS.get(name, ("", lambda _: True))
            if not is_good(value):
                raise UserError(
                    f"{flag(name)} must be {wanted}. Received: {value}"
                )


class Sampler:
    """Draws translations of numbered lines.

    Args:
        ask: Function from the name of a signature and a dict of arrays to the
            dict of its outputs.
        options: How to draw.
        client: The `Client` that is asked, if it is one.
    """

    def __init__(
        self,
        ask: Callable,
        options: SamplingOptions,
        client: Client | None = None,
    ):
        self._ask = ask
        self._options = options
        self.client = client

    def __call__(
        self, batch: tuple[list[bytes], list[int]]
    ) -> dict[str, tf.Tensor]:
        """Draws a translation of each line.

        Args:
            batch: Lines, and their numbers.
        """
        lines, numbers = batch
        rows, options = len(lines), self._options
        seeds = np.array(numbers, np.int64) + options.seed % 2**32
        outputs = self._ask(
            SIGNATURE,
            {
                "text": np.array([*lines, b""], object)[:-1],
                "temperature": np.full(rows, options.temperature, np.float32),
                "top_k": np.full(rows, options.top_k, np.int32),
                "top_p": np.full(rows, options.top_p, np.float32),
                "seed": seeds.astype(np.int32),  # Of 32 bits, the last.
            },
        )
        return check_outputs(outputs, rows)


def load_ask(export_dir: pathlib.Path) -> Callable:
    """Loads the newest version of an export, to be asked for draws.

    Returns:
        Function from the name of a signature and a dict of arrays to the dict
        of its outputs.

    Raises:
        UserError: If there is none, or it has no signature that draws.
    """
    folder = find_version(export_dir, SAVED_MODEL)
    loaded = load_version(folder)
    if SIGNATURE not in loaded.signatures:
        raise UserError(
            f"--sample needs an export with the signature {SIGNATURE}; export "
            f"the run anew with `--signatures {SIGNATURE}`. Received: {folder}"
        )

    def ask(signature, inputs):
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        return loaded.signatures[signature](**tensors)

    return ask
