"""Trains the rows of Table 3, scaled to a budget, with `python -m train`.

`--scale` divides `d_model`, `d_ff`, `d_k` and `d_v`, and `--layer-scale`
divides `N`. The number of heads, dropout, label smoothing and positions stay.
So does the ratio of a row's updates to those of base: the column "train steps"
is a cell of the table too, and big has three times the updates.
"""

import argparse
import dataclasses
import gc
import pathlib
import sys

import keras

import train.__main__ as train_command
from command_line.errors import UserError, exit_on_user_error
from command_line.options import flag, option, parse_known_options, positive, values_of
from keras_transformer import PRESETS
from paper.table3 import report
from paper.table3.rows import ROWS, SIZES, plan_rows_in_order, scale_row
from train import options as train_options
from train.data.corpus import Corpus
from train.loop import signal_handling
from train.resolve_options import refuse_hold_out, resolve
from train.run.run_description import describe
from train.run.run_folder import locked
from train.training_corpus import load_corpus

# Options that the rows vary, or that would make rows incomparable.
FIXED = (
    "preset",
    *SIZES,
    *("num_heads", "dropout", "label_smoothing", "positions", "seed"),
    *("average", "patience", "init_from", "both_directions", "recipe"),
    "validate_bleu",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of the command, besides those of its trainings."""

    run_dir: pathlib.Path = option(
        help="folder for the rows, each a run folder, and for the table",
        kind=pathlib.Path,
    )
    scale: float = option(
        1.0, "divides the widths d_model, d_ff, d_k and d_v", kind=positive(float)
    )
    layer_scale: float | None = option(
        None, "divides the layers N (default: that of --scale)", kind=positive(float)
    )
    steps: int = option(
        PRESETS["base"].recipe.steps,
        "updates of a row; big has three times as many, as in the paper",
        kind=positive(int),
    )
    base_runs: int = option(
        5,
        "runs of base, with different seeds, that show how much chance "
        "does: a row must differ from their mean by 15.6 of their standard "
        "deviations if there are 2, by 3.0 if there are 5",
        kind=positive(int),
        metavar="N",
    )
    rows: list[str] | None = option(
        None,
        f"some of {', '.join(ROWS)}; base comes always (default: all)",
        nargs="+",
        choices=ROWS,
        metavar="ROW",
    )


def parse_options(argv: list[str] | None = None) -> tuple[TableOptions, list[str]]:
    """Returns the options of the table, and what is left for its trainings."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.table3",
        description=__doc__,
        epilog="All other options are those of python -m train, and the same "
        "for all rows: the corpus, --batch-tokens, --warmup-steps, ...",
    )
    return parse_known_options(parser, TableOptions, argv)


def refuse_fixed_options(run_dir: pathlib.Path, rest: list[str]) -> None:
    """Refuses options of `python -m train` that the rows set themselves."""
    where = ["--run-dir", str(run_dir)]
    given, default = (
        values_of(train_options.parse_options(argv))
        for argv in ([*where, *rest], where)
    )
    refused = [flag(name) for name in FIXED if given[name] != default[name]]
    if given["run_dir"] != default["run_dir"]:
        refused.append("--run-dir a second time")
    if refused:
        raise UserError(
            f"the rows of Table 3 set {', '.join(map(flag, FIXED))} "
            f"themselves. Received: {', '.join(refused)}"
        )


def plan_rows(options: TableOptions, rest: list[str]) -> dict[str, list[str]]:
    """Returns the arguments of `python -m train` for each run."""
    layer_scale = options.layer_scale or options.scale
    scales = options.scale, layer_scale, options.steps
    shared = ["--cache-dir", options.run_dir / "encoded"]
    plan = {}
    runs = plan_rows_in_order(options.rows or ROWS, options.base_runs)
    for name, (row, seed) in runs.items():
        scaled = scale_row(row, *scales)
        of_the_row = {
            "preset": row,
            **{size: scaled.hyperparameters()[size] for size in SIZES},
            "steps": scaled.recipe.steps,
            "seed": seed,
            "average": 1,  # The paper averaged no checkpoints for this table.
            "run_dir": options.run_dir / name,
        }
        command = [*shared, *rest]
        for key, value in of_the_row.items():
            command += [flag(key), value]
        plan[name] = [str(text) for text in command]
    return plan


def is_done(command: list[str], corpora: tuple[Corpus, Corpus]) -> bool:
    """Returns whether a row is trained and scored.

    Raises:
        UserError: If its folder holds a run of other arguments.
    """
    row, preset = resolve(train_options.parse_options(command), None)
    run_dir = row.run.run_dir
    digests = row.vocabulary.digests()
    description = describe(row.arguments(), preset, *corpora, digests)
    earlier = description.find_earlier(run_dir, train_options.NOT_COMPARED)
    return bool(earlier and report.read_scores(run_dir, preset.recipe.steps))


def train_row(command: list[str]) -> bool:
    """Returns whether the training came to its end."""
    try:
        train_command.main(command)
    except SystemExit as exit_:
        if exit_.code != 2:  # A signal: the command ends.
            raise
        return False
    # Nothing of this model is needed by the next.
    keras.backend.clear_session()
    gc.collect()
    return True


def train_rows(options: TableOptions, rest: list[str]) -> None:
    """Trains the rows that are missing, and writes the table after each.

    Raises:
        UserError: If an option is wrong, if the folder holds other rows, or,
            when all others are done, if a row could not be trained.
    """
    plan = plan_rows(options, rest)
    first, _ = resolve(train_options.parse_options(plan["base"]), None)
    refuse_hold_out(first.corpus, "each row has a seed of its own")
    corpora = load_corpus(first)
    done = {name for name, command in plan.items() if is_done(command, corpora)}
    failed = []
    for number, (name, command) in enumerate(plan.items(), 1):
        is_there = name in done
        what = "there" if is_there else f"python -m train {' '.join(command)}"
        print(f"row {number} of {len(plan)}, {name}: {what}")
        if is_there:
            continue
        if train_row(command):
            report.write(options.run_dir)
        else:
            failed.append(name)
            if name == "base":
                break  # Without base there is nothing to compare with.
    else:
        print(report.write(options.run_dir))
        print(f"written to {options.run_dir / 'table3.md'}")
    if failed:
        raise UserError(
            "these rows could not be trained, for the reasons above, and are "
            f"not in the table: {', '.join(failed)}"
        )


def main(argv: list[str] | None = None) -> None:
    options, rest = parse_options(argv)
    with exit_on_user_error():
        refuse_fixed_options(options.run_dir, rest)
        exit_now = signal_handling.exit_now
        with signal_handling.handled_by(exit_now), locked(options.run_dir):
            train_rows(options, rest)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # Someone follows a log.
    with signal_handling.skip_thread_shutdown():
        main()
