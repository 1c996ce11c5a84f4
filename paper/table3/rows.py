"""The rows of Table 3 and their numbers, scaled to a budget."""

import fractions

from keras_transformer import PRESETS, Preset
from paper.table3 import results

WIDTHS = ("hidden_dim", "intermediate_dim", "key_dim", "value_dim")
SIZES = ("num_layers", *WIDTHS)
ROWS = tuple(
    name for name, preset in PRESETS.items() if preset.description.startswith("Table 3")
)


def plan_rows_in_order(rows: list[str], base_runs: int) -> dict[str, tuple[str, int]]:
    """Returns the preset and the seed's offset of each run: base first, big last.

    The runs of base differ in their seed.
    """
    runs = {"base": ("base", 0)}
    runs |= {f"base-run{n}": ("base", n - 1) for n in range(2, base_runs + 1)}
    for name in sorted(rows, key=lambda name: name == "big"):
        runs.setdefault(name, (name, 0))
    return runs


def scale_row(row: str, scale: float, layer_scale: float, steps: int) -> Preset:
    """Returns a row with smaller widths and fewer layers, at least 1.

    The base model has `steps` updates.
    """
    sizes = PRESETS[row].hyperparameters()
    return PRESETS[row].replace(
        **{name: scale_size(sizes[name], scale) for name in WIDTHS},
        num_layers=scale_size(sizes["num_layers"], layer_scale),
        steps=results.steps_of(row, steps),
    )


def scale_size(size: int, scale: float) -> int:
    return max(1, int(size / scale + 0.5))


def broken_ratios(name: str, scaled: Preset, scaled_base: Preset) -> list[str]:
    """Returns a message for each changed cell that lost its ratio to base."""
    scaled, scaled_base = (scaled.hyperparameters(), scaled_base.hyperparameters())
    row, base = (PRESETS[name].hyperparameters(), PRESETS["base"].hyperparameters())
    lines = []
    for field in SIZES:
        ours = fractions.Fraction(scaled[field], scaled_base[field])
        paper = fractions.Fraction(row[field], base[field])
        if ours != paper:
            lines.append(
                f"row {name}: {results.SYMBOLS[field]} is {scaled[field]} "
                f"where base has {scaled_base[field]}, {ours} of it and not "
                f"{paper} as in the paper"
            )
    return lines
