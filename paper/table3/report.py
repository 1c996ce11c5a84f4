"""Writes the trained rows beside Table 3."""

import json
import math
import pathlib
import statistics
from typing import NamedTuple

from command_line.errors import UserError
from command_line.markdown import format_table
from command_line.text_files import write_atomically
from export.bundle.model_loading import read_notes
from keras_transformer import Preset
from paper.table3.rows import PAPER, SYMBOLS, steps_of
from train.run.run_description import RunDescription
from train.run.run_folder import step_of

# The 97.5th percentile of Student's t for 1, 2, … degrees of freedom.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
NOTES = """\
PPL: per subword of the vocabulary, with EOS, unsmoothed. BLEU: the
paper's is tokenized, ours sacreBLEU's. Both are of the validation set, without
averaged checkpoints, beam 4, length penalty 0.6. Parameters are in millions.
Differences are to the mean of base's runs: of PPL in percent, of BLEU in points.
"""
HEAD = (
    *("row", "ours differs in", "PPL, paper", "ours", "BLEU, paper", "ours"),
    *("parameters, paper", "ours", "PPL %, paper", "ours", "BLEU ±, paper", "ours"),
)


class Row(NamedTuple):
    """What was measured of a row."""

    preset: Preset
    corpus: dict  # Digests of the text.
    conditions: str
    log_perplexity: float
    bleu: float
    millions: float  # Parameters.


def read_scores(run_dir: pathlib.Path, steps: int) -> dict | None:
    """Returns the scores of a model after so many updates; `None` without it."""
    if not (run_dir / "model.keras").exists():
        return None
    notes = read_notes(run_dir)
    trained = [step_of(name) for name in notes.get("checkpoints", ())]
    scores = notes.get("validation", {})
    return scores if trained == [steps] and "bleu" in scores else None


def read_row(run_dir: pathlib.Path, steps: int) -> Row | None:
    """Returns a row of so many updates; `None` while it is not done."""
    scores = read_scores(run_dir, steps)
    if scores is None:
        return None
    description = RunDescription.load_run(run_dir, "--run-dir")
    if description.preset.recipe.steps != steps:
        return None  # It is being trained further.
    report = json.loads((run_dir / "report.json").read_text("utf-8"))
    return Row(
        description.preset,
        description.corpus,
        describe_conditions(description, report),
        math.log(scores["perplexity"]),
        scores["bleu"],
        report["model"]["parameters"] / 1e6,
    )


def describe_conditions(description: RunDescription, report: dict) -> str:
    """Returns what was trained, on what, in the words of the paper."""
    arguments, preset = description.arguments, description.preset
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


def read_rows(run_dir: pathlib.Path) -> dict[str, Row]:
    """Returns the rows that are done, base first.

    Those of another text than base's, or trained for less long, are not done.

    Raises:
        UserError: If base is not among them.
    """
    path = run_dir / "base" / "arguments.json"
    steps = RunDescription.load(path).preset.recipe.steps if path.exists() else 0
    repeats = sorted(path.name for path in run_dir.glob("base-run*"))
    found = {
        name: read_row(run_dir / name, steps_of(name, steps))
        for name in ["base", *repeats, *list(PAPER)[1:]]
    }
    base = found["base"]
    if base is None:
        raise UserError(
            "--run-dir must hold the row base, trained to its end: all others "
            f"are compared with it. Received: {run_dir}"
        )
    return {n: row for n, row in found.items() if row and row.corpus == base.corpus}


def seed_margin(values: list[float]) -> float | None:
    """Returns the distance from the mean within which another run would lie.

    It would 19 times out of 20, as its seed alone differs. More than ten values
    are taken for ten, which makes the margin a little too wide; fewer than two
    give `None`.
    """
    count = len(values)
    if count < 2:
        return None
    t = STUDENT_T[min(count - 1, len(STUDENT_T)) - 1]
    return t * statistics.stdev(values) * math.sqrt(1 + 1 / count)


def format_report(rows: dict[str, Row]) -> str:
    """Returns the table as Markdown, with the margin of chance."""
    runs = [row for name, row in rows.items() if name.startswith("base")]
    of_base = list(zip(*((run.log_perplexity, run.bleu) for run in runs), strict=True))
    means = [statistics.fmean(values) for values in of_base]
    cells = [
        format_cells(name, row, describe_change(row.preset, rows["base"].preset), means)
        for name, row in rows.items()
    ]
    lines = [format_table(HEAD, cells), ""]
    lines += [f"Base here: {rows['base'].conditions}.", "", NOTES]
    if missing := [name for name in PAPER if name not in rows]:
        lines += [f"Not there yet: {', '.join(missing)}.", ""]
    if len(runs) > 1:
        perplexity, bleu = map(seed_margin, of_base)
        lines += [
            f"Chance: {len(runs)} runs of base differ in their seed alone. One more "
            f"would lie within {bleu:.2f} BLEU and {100 * math.expm1(perplexity):.1f} "
            "% of perplexity of their mean, 19 times out of 20.",
            "",
        ]
    return "\n".join(lines)


def format_cells(name: str, row: Row, change: str, means: list[float]) -> list:
    """Returns the cells of a row; `means` are base's log perplexity and BLEU."""
    perplexity, bleu, millions = PAPER.get(name, (None, None, None))
    base_perplexity, base_bleu, _ = PAPER["base"]
    cells = [
        *(name, change),
        *(perplexity and f"{perplexity:.2f}", f"{math.exp(row.log_perplexity):.2f}"),
        *(bleu, f"{row.bleu:.1f}"),
        *(millions, f"{row.millions:.2f}"),
    ]
    if name.startswith("base"):  # All differences are to the mean of these.
        return [*cells, *[None] * 4]
    return [
        *cells,
        f"{100 * (perplexity / base_perplexity - 1):+.1f}",
        f"{100 * math.expm1(row.log_perplexity - means[0]):+.1f}",
        f"{bleu - base_bleu:+.1f}",
        f"{row.bleu - means[1]:+.1f}",
    ]


def write(run_dir: pathlib.Path) -> str:
    """Writes `table3.md`, and returns its content.

    Raises:
        UserError: If base is not there.
    """
    markdown = format_report(read_rows(run_dir))
    write_atomically(run_dir / "table3.md", markdown.encode())
    return markdown
