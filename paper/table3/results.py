"""Reads the results of the trained rows, and the numbers of Table 3."""

import json
import pathlib

from command_line.errors import UserError
from keras_transformer import PRESETS, Preset
from paper.table3 import findings
from train.run.run_description import RunDescription
from train.run.run_folder import read_history

TRANSLATIONS = "validation.json"
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


def paper_row(name: str) -> dict:
    """Returns a row of the paper's table; `None` where a cell is empty."""
    keys = ("perplexity", "bleu", "millions")
    return dict(zip(keys, PAPER[name], strict=True))


def steps_of(name: str, base_steps: int) -> int:
    """Returns the updates of a row, in the paper's ratio to base."""
    row = PRESETS.get(name, PRESETS["base"])
    return round(base_steps * row.recipe.steps / PRESETS["base"].recipe.steps)


def read_translations(run_dir: pathlib.Path) -> dict:
    """Returns a row's translations, references and update, or nothing."""
    path = run_dir / TRANSLATIONS
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def read_row(run_dir: pathlib.Path) -> dict | None:
    """Returns what was measured of a row; `None` while it is not done."""
    text = read_translations(run_dir)
    if not text:
        return None
    description = RunDescription.load_run(run_dir, "--run-dir")
    arguments, preset = description.arguments, description.preset
    report = json.loads((run_dir / "report.json").read_text("utf-8"))
    history = read_history(run_dir)
    # A run that was made longer may have no whole epoch.
    last = int(history[-1]["step"]) if history else 0
    if not last == text["step"] == preset.recipe.steps:
        return None  # It is being trained further.
    counts = findings.sentence_counts(text["translations"], text["references"])
    return {
        "preset": preset,
        "conditions": describe_conditions(arguments, preset, report),
        "perplexity": float(history[-1]["val_perplexity"]),
        "bleu": findings.bleu(counts.sum(axis=0)),
        "parameters": report["model"]["parameters"],
        "minutes": minutes_of(history, report["batches"]),
        "references": text["references"],
        "counts": counts,
    }


def describe_conditions(arguments: dict, preset: Preset, report: dict) -> str:
    """Returns what was trained, on what, in the words of the paper."""
    sizes = ", ".join(
        f"{symbol}={preset.hyperparameters()[field]}"
        for field, symbol in SYMBOLS.items()
        if field not in ("positions", "steps")
    )
    recipe = preset.recipe
    return (
        f"{sizes}, {preset.architecture.norm}-norm; {recipe.steps:,} updates "
        f"of {arguments['batch_tokens']:,} positions a side, "
        f"{recipe.warmup_steps:,} of warm-up; {arguments['vocabulary_size']:,} "
        f"subwords; {report['training']['kept']:,} pairs to train on and "
        f"{report['validation']['kept']:,} to validate"
    )


def minutes_of(history: list[dict], batches: dict) -> float | None:
    """Returns the minutes of a run's updates, from the speed of its epochs.

    An epoch without a speed counts as fast as the others. `None` if none has one.
    """
    tokens = batches["target_tokens_per_pass"] / batches["batches_per_pass"]
    start = timed = seconds = 0
    for row in history:
        end = int(row["step"])
        if speed := row.get("tokens_per_second"):
            timed += end - start
            seconds += (end - start) * tokens / float(speed)
        start = end
    return seconds / 60 * start / timed if timed else None


def describe_change(preset: Preset, base: Preset) -> str:
    """Returns the cells of a row that are not those of base."""
    cells, of_base = preset.hyperparameters(), base.hyperparameters()
    return ", ".join(
        f"{symbol}={cells[field]}"
        for field, symbol in SYMBOLS.items()
        if cells[field] != of_base[field]
    )


def read_rows(run_dir: pathlib.Path) -> dict[str, dict]:
    """Returns what was measured of all rows that are done, base first.

    Raises:
        UserError: If base is not among them, or if the rows have not been
            translated from one validation set.
    """
    repeats = sorted(path.name for path in run_dir.glob("base-run*"))
    names = ["base", *repeats, *list(PAPER)[1:]]
    rows = {name: row for name in names if (row := read_row(run_dir / name))}
    if "base" not in rows:
        raise UserError(
            "--run-dir must hold the row base, trained to its end: all others "
            f"are compared with it. Received: {run_dir}"
        )
    # If base has been trained further, the other rows still need it.
    base_steps = rows["base"]["preset"].recipe.steps
    rows = {
        name: row
        for name, row in rows.items()
        if row["preset"].recipe.steps == steps_of(name, base_steps)
    }
    for name, row in rows.items():
        if row["references"] != rows["base"]["references"]:
            raise UserError(
                "all rows must have one validation set. "
                f"Received: {run_dir / name} with another than base"
            )
    return rows
