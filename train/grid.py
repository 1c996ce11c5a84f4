"""Trains variants of a run with several seeds, and compares their scores.

    python -m train.grid --run-dir runs/grid --grid grid.json --seeds 1 2 3 \\
        --preset tiny --train-source train.en --train-target train.de \\
        --validation-source valid.en --validation-target valid.de

The grid is a JSON object of names and the options that each adds:

    {"plain": "", "4,000 subwords": "--vocabulary-size 4000", "pre-norm": "--norm pre"}

All other options are those of `python -m train`, the same for all. The same
command resumes; finished runs stay. `RUN_DIR/report.md` has the table.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Collection

from command_line.errors import UserError, exit_on_user_error
from command_line.markdown import format_table
from command_line.options import option, parse_known_options
from command_line.text_files import write_atomically
from train.loop.signal_handling import ended_with_this_one, exit_now, handled_by
from train.options import BOTH_DIRECTIONS, parse_options as parse_training_options
from train.run.run_folder import read_history

# The 97.5th percentile of Student's t for 1, 2, … degrees of freedom.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
COMMAND_FILE = "grid_command.json"
HEAD = ["variant", "seeds", "BLEU", "gain", "chrF", "perplexity", "updates"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Options of the command, besides those of its trainings."""

    run_dir: pathlib.Path = option(
        help="folder for the runs, each a run folder, and for the report",
        kind=pathlib.Path,
    )
    grid: pathlib.Path = option(
        help="JSON object of names and the options that each adds",
        kind=pathlib.Path,
        metavar="FILE",
    )
    seeds: list[int] = option(
        help="seeds of each variant", kind=int, nargs="+", metavar="SEED"
    )


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of the grid."""

    variant: str
    seed: int
    run_dir: pathlib.Path
    command: list[str]  # Arguments of `python -m train`.


def parse_options(argv: list[str] | None = None) -> tuple[GridOptions, list[str]]:
    """Returns the options of the grid, and what is left for its trainings."""
    parser = argparse.ArgumentParser(
        prog="python -m train.grid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parse_known_options(parser, GridOptions, argv)


def read_grid(path: pathlib.Path) -> dict[str, list[str]]:
    """Returns the options of each variant by its name."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} must be JSON: {error}") from None
    texts = isinstance(found, dict) and [*found.values()]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UserError(
            f"{path} must be an object of names and options, such as "
            f'{{"plain": "", "pre-norm": "--norm pre"}}. Received: {found!r}'
        )
    folders = [folder_of(name) for name in found]
    if len(set(folders)) < len(folders) or not all(folders):
        raise UserError(
            f"names in {path} must differ in letters and digits. "
            f"Received: {', '.join(found)}"
        )
    options = {}
    for name, text in found.items():
        try:
            options[name] = shlex.split(text)
        except ValueError as error:
            raise UserError(
                f"options in {path} must be as in a shell: {error}. Received: {text}"
            ) from None
    return options


def folder_of(name: str) -> str:
    return "-".join(re.findall(r"\w+", name.lower()))


def plan_runs(options: GridOptions, rest: list[str]) -> list[Run]:
    """Returns the runs, those of the first seed first."""
    runs = []
    cache = ["--cache-dir", str(options.run_dir / "encoded")]
    variants = read_grid(options.grid)
    for seed in options.seeds:
        for name, added in variants.items():
            run_dir = options.run_dir / f"{folder_of(name)}-{seed}"
            given = [*rest, *added]
            for word in given:
                if word.partition("=")[0] in ("--seed", "--run-dir"):
                    raise UserError(
                        f"the grid sets --seed and --run-dir itself. Received: {word}"
                    )
            command = [*cache, *given, "--run-dir", str(run_dir)]
            command += ["--seed", str(seed)]
            parse_training_options(command)
            runs.append(Run(name, seed, run_dir, command))
    return runs


def is_done(run: Run) -> bool:
    """Returns whether a run has ended."""
    path = run.run_dir / COMMAND_FILE
    # One whose options were refused has not begun.
    has_begun = any(
        (run.run_dir / folder / "arguments.json").exists()
        for folder in ("", BOTH_DIRECTIONS)
    )
    command = json.loads(path.read_text("utf-8")) if path.exists() else None
    if has_begun and command != run.command:
        raise UserError(
            f"{run.run_dir} holds a run of other options; take them, or "
            f"another --run-dir. Received: {shlex.join(run.command)}"
        )
    return (run.run_dir / "model.json").exists()


def train(run: Run) -> bool:
    """Trains in a process of its own; returns whether that succeeded."""
    run.run_dir.mkdir(parents=True, exist_ok=True)
    text = json.dumps(run.command, ensure_ascii=False)
    write_atomically(run.run_dir / COMMAND_FILE, text.encode())
    process = subprocess.Popen([sys.executable, "-m", "train", *run.command])
    with ended_with_this_one(process):
        code = process.wait()
    if code < 0 or code > 2:
        raise SystemExit(code)
    return code == 0


def make_report(runs: list[Run]) -> str:
    """Returns the table of the runs that have ended, in Markdown.

    An interval is that of the mean of a variant, at 95 %, by Student's t, and
    beyond ten seeds with the quantile of ten. The gain is the mean difference
    to the first variant, over their common seeds.
    """
    scores, signatures = {}, set()
    for run in runs:
        path = run.run_dir / "model.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))["validation"]
            found["steps"] = int(read_history(run.run_dir)[-1]["step"])
            scores.setdefault(run.variant, {})[run.seed] = found
            signatures |= {found["signature"]} if "signature" in found else set()
    first = bleu_by_seed(scores.get(runs[0].variant, {}))
    rows = []
    for variant, by_seed in scores.items():
        bleu = bleu_by_seed(by_seed)
        gains = [bleu[seed] - first[seed] for seed in bleu if seed in first]
        rows.append(
            [
                variant,
                len(by_seed),
                describe(bleu.values()),
                describe(gains, "+.2f") if variant != runs[0].variant else "",
                describe([x["chrf"] for x in by_seed.values() if "chrf" in x]),
                describe([x["perplexity"] for x in by_seed.values()]),
                describe([x["steps"] for x in by_seed.values()], ",.0f"),
            ]
        )
    table = f"{format_table(HEAD, rows)}\n"
    if signatures:
        table += f"\nBLEU of the validation set: {', '.join(sorted(signatures))}.\n"
    return table


def bleu_by_seed(scores: dict[int, dict]) -> dict[int, float]:
    return {seed: found["bleu"] for seed, found in scores.items() if "bleu" in found}


def write_report(runs: list[Run], folder: pathlib.Path) -> str:
    """Writes the table into a folder, and returns it."""
    report = make_report(runs)
    write_atomically(folder / "report.md", report.encode())
    return report


def describe(values: Collection[float], form: str = ".2f") -> str:
    """Returns a mean with its interval, or "" if there are no values."""
    if not values:
        return ""
    text = format(statistics.mean(values), form)
    if len(values) == 1 or len({*values}) == 1:
        return text
    t = STUDENT_T[min(len(values) - 1, len(STUDENT_T)) - 1]
    half = t * statistics.stdev(values) / len(values) ** 0.5
    return f"{text} ± {half:.2f}"


def run_grid(options: GridOptions, rest: list[str]) -> None:
    """Trains the runs that are missing, and writes the table after each."""
    runs = plan_runs(options, rest)
    done = [is_done(run) for run in runs]
    failed = []
    for number, (run, is_there) in enumerate(zip(runs, done, strict=True), 1):
        name = f"run {number} of {len(runs)}, {run.variant}, seed {run.seed}"
        if is_there:
            print(f"{name}: there")
            continue
        print(f"{name}: python -m train {shlex.join(run.command)}")
        if train(run):
            write_report(runs, options.run_dir)
        else:
            failed.append(f"{run.variant} ({run.seed})")
    print(write_report(runs, options.run_dir), end="")
    if failed:
        raise UserError(
            "these runs failed, for the reasons above, and are not in the "
            f"table: {', '.join(failed)}"
        )


def main(argv: list[str] | None = None) -> None:
    with handled_by(exit_now), exit_on_user_error():
        run_grid(*parse_options(argv))


if __name__ == "__main__":
    # Log files get each line at once.
    sys.stdout.reconfigure(line_buffering=True)
    main()
