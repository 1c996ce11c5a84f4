"""Computes the FLOPs of a training in two ways (Table 2).

The paper multiplies hardware by time: GPUs x seconds x the FLOP/s that one
sustains. The other count is of the work itself: every matrix product in the
graph of an update, forward and backward, times the updates.
"""

import dataclasses

from command_line.errors import exit_on_user_error
from command_line.markdown import format_table
from command_line.options import option, parse_command, positive
from keras_transformer import PRESETS
from paper.graph_flops import update_flops
from train.resolve_options import require_preset

GPUS = 8
FLOPS_PER_SECOND = 9.5e12  # "We used values of [...] 9.5 TFLOPS for [...] P100."
BATCH_TOKENS = 25_000  # Of a side (Section 5.1).
VOCABULARY_SIZE = 37_000
HOURS = {"base": 12.0, "big": 3.5 * 24}  # Section 5.2.
PRINTED = {"base": 3.3e18, "big": 2.3e19}


@dataclasses.dataclass(frozen=True)
class CostOptions:
    preset: str = option("base", f"one of {', '.join(PRESETS)}", metavar="NAME")
    length: int = option(25, "tokens of a sentence, all alike", kind=positive(int))


def hardware_flops(hours: float) -> float:
    """Returns the paper's estimate: devices, seconds and speed multiplied."""
    return GPUS * hours * 3600 * FLOPS_PER_SECOND


def run(options: CostOptions) -> None:
    name, length = options.preset, options.length
    preset = require_preset(name)
    steps, rows = preset.recipe.steps, max(1, BATCH_TOKENS // length)
    an_update = update_flops(preset, VOCABULARY_SIZE, rows, length)
    products = steps * an_update
    estimates = {f"matrix products: {an_update:.3g} an update": products}
    if name in HOURS:
        hardware = hardware_flops(HOURS[name])
        text = f"the paper: {GPUS} GPUs, {HOURS[name]:g} hours, "
        text += f"{FLOPS_PER_SECOND:g} FLOP/s each"
        printed = {text: hardware, "printed in Table 2": PRINTED[name]}
        estimates = printed | estimates
    print(
        f"{name}: {steps:,} updates of {rows:,} pairs of sentences, "
        f"{length} tokens each, {VOCABULARY_SIZE:,} subwords\n"
    )
    cells = [[text, f"{flops:.2g}"] for text, flops in estimates.items()]
    print(format_table(["estimate", "FLOPs"], cells))
    if name in HOURS:
        print(f"\nThe products are {products / hardware:.0%} of the first.")


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("paper.table2", __doc__, CostOptions, argv))


if __name__ == "__main__":
    main()
