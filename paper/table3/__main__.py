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
import types

import keras

import train.__main__ as train_command
from command_line.errors import UserError, exit_on_user_error
from command_line.options import flag, option, parse_known_options, positive, values_of
from command_line.text_files import write_json
from keras_transformer import PRESETS, Preset
from paper.table3 import report, results
from paper.table3.rows import ROWS, SIZES, plan_rows_in_order, scale_row
from train import options as train_options
from train.data.corpus import Corpus, read_all
from train.data_preparation import load_corpus
from train.loop import signal_handling
from train.monitoring.validation_bleu import ValidationBleu
from train.resolve_options import refuse_hold_out, resolve
from train.run.run_description import describe
from train.run.run_folder import locked

# Options that the rows vary, or that would make rows incomparable.
FIXED = (
    "preset",
    *SIZES,
    *("num_heads", "dropout", "label_smoothing", "positions", "seed"),
    *("average", "patience", "init_from", "both_directions", "recipe"),
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


def plan_rows(
    options: TableOptions, rest: list[str]
) -> dict[str, tuple[list[str], Preset]]:
    """Returns the arguments of `python -m train` and the preset of each run."""
    layer_scale = options.layer_scale or options.scale
    scales = options.scale, layer_scale, options.steps
    shared = ["--cache-dir", options.run_dir / "encoded"]
    shared += ["--validate-bleu", 0]  # `translate_row` translates.
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
        plan[name] = ([str(text) for text in command], scaled)
    return plan


def is_done(command: list[str], corpora: tuple[Corpus, Corpus]) -> bool:
    """Returns whether a row is trained and its translations exist.

    Raises:
        UserError: If its folder holds a run of other arguments.
    """
    row, preset = resolve(train_options.parse_options(command), None)
    run_dir = row.run.run_dir
    digests = row.vocabulary.digests()
    description = describe(row.arguments(), preset, *corpora, digests)
    earlier = description.find_earlier(run_dir, train_options.NOT_COMPARED)
    # A resumed row may have another validation set, to be translated then.
    if earlier is None or earlier.corpus != description.corpus:
        return False
    step = results.read_translations(run_dir).get("step")
    return step == preset.recipe.steps


def translate_row(run_dir: pathlib.Path, corpus: Corpus, step: int) -> None:
    """Translates the validation set, as Section 6.1 does, into a file."""
    pairs = read_all(corpus)
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    proto = (run_dir / "tokenizer.model").read_bytes()
    search = ValidationBleu(pairs, proto, run_dir / "logs")
    search.set_model(types.SimpleNamespace(transformer=model))
    content = {
        "step": step,
        "translations": search.translate(),
        "references": pairs.targets,
    }
    write_json(run_dir / results.TRANSLATIONS, content)


def train_row(command: list[str], corpus: Corpus, preset: Preset) -> bool:
    """Trains and translates; returns whether the training came to its end."""
    try:
        train_command.main(command)
    except SystemExit as exit_:
        if exit_.code != 2:  # A signal: the command ends.
            raise
        return False
    run_dir = train_options.parse_options(command).run.run_dir
    translate_row(run_dir, corpus, preset.recipe.steps)
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
    commands = [command for command, _ in plan.values()]
    first, _ = resolve(train_options.parse_options(commands[0]), None)
    refuse_hold_out(first.corpus, "each row has a seed of its own")
    corpora = load_corpus(first)
    done = [is_done(command, corpora) for command in commands]
    failed = []
    for number, (name, is_there) in enumerate(zip(plan, done, strict=True), 1):
        command, preset = plan[name]
        what = "there" if is_there else f"python -m train {' '.join(command)}"
        print(f"row {number} of {len(plan)}, {name}: {what}")
        if is_there:
            continue
        if train_row(command, corpora[1], preset):
            report.write(options.run_dir, show=False)
        else:
            failed.append(name)
            if name == "base":
                break  # Without base there is nothing to compare with.
    else:
        report.write(options.run_dir)
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
