"""The rows of Table 3: the numbers that are printed, and sizes for a budget."""

from keras_transformer import PRESETS, Preset

WIDTHS = ("hidden_dim", "intermediate_dim", "key_dim", "value_dim")
SIZES = ("num_layers", *WIDTHS)
SYMBOLS = {
    "num_layers": "N",
    "hidden_dim": "d_model",
    "intermediate_dim": "d_ff",
    "num_heads": "h",
    "key_dim": "d_k",
    "value_dim": "d_v",
    "dropout": "P_drop",
    "label_smoothing": "ε_ls",
    "positions": "positions",
    "steps": "updates",
}
# Perplexity, BLEU and millions of parameters, as printed.
PAPER = {
    "base": (4.92, 25.8, 65),
    "a-h1": (5.29, 24.9, None),
    "a-h4": (5.00, 25.5, None),
    "a-h16": (4.91, 25.8, None),
    "a-h32": (5.01, 25.4, None),
    "b-dk16": (5.16, 25.1, 58),
    "b-dk32": (5.01, 25.4, 60),
    "c-n2": (6.11, 23.7, 36),
    "c-n4": (5.19, 25.3, 50),
    "c-n8": (4.88, 25.5, 80),
    "c-d256": (5.75, 24.5, 28),
    "c-d1024": (4.66, 26.0, 168),
    "c-ff1024": (5.12, 25.4, 53),
    "c-ff4096": (4.75, 26.2, 90),
    "d-drop0.0": (5.77, 24.6, None),
    "d-drop0.2": (4.95, 25.5, None),
    "d-ls0.0": (4.67, 25.3, None),
    "d-ls0.2": (5.47, 25.7, None),
    "e-learned": (4.92, 25.7, None),
    "big": (4.33, 26.4, 213),
}
ROWS = tuple(PAPER)


def steps_of(name: str, base_steps: int) -> int:
    """Returns the updates of a row, in the paper's ratio to base."""
    row = PRESETS.get(name, PRESETS["base"])
    return round(base_steps * row.recipe.steps / PRESETS["base"].recipe.steps)


def plan_rows_in_order(rows: list[str], base_runs: int) -> dict[str, tuple[str, int]]:
    """Returns the preset and the seed of each run: base first, big last.

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
        steps=steps_of(row, steps),
    )


def scale_size(size: int, scale: float) -> int:
    return max(1, int(size / scale + 0.5))
