"""Reads the results of the trained rows."""

import json
import pathlib

from command_line.errors import UserError
from keras_transformer import Preset
from paper.table3 import findings
from paper.table3.rows import PAPER, SYMBOLS, steps_of
from train.run.run_description import RunDescription
from train.run.run_folder import read_history

TRANSLATIONS = "validation.json"


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
