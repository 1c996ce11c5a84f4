"""The rows of Table 3, scaled to a budget, each a run of `python -m train`.

`--scale` divides `d_model`, `d_ff`, `d_k` and `d_v`, and `--layer-scale`
divides `N`. The number of heads, dropout, label smoothing and positions stay.
So does the ratio of a row's updates to those of base: the column "train steps"
is a cell of the table too, and big has three times the updates.
"""

import argparse
import fractions
import gc
import json
import pathlib
import types

import keras
from train.arguments import parse_arguments
from train.arguments import resolve

import train.__main__ as train_command
from command_line.errors import UserError
from keras_transformer import PRESETS
from keras_transformer import Preset
from paper.table3 import report
from paper.table3 import results
from train.data import sources
from train.data.corpus import Corpus
from train.data.corpus import Pairs
from train.data.sources import option
from train.loop import signals
from train.options import positive
from train.run import run_folder
from train.watch.validation_bleu import ValidationBleu

WIDTHS = ("hidden_dim", "intermediate_dim", "key_dim", "value_dim")
SIZES = ("num_layers", *WIDTHS)
ROWS = tuple(
    name
    for name, preset in PRESETS.items()
    if preset.description.startswith("Table 3")
)
# What the rows are about, or what would make them unlike.
FIXED = (
    "preset",
    *SIZES,
    "num_heads",
    "dropout",
    "label_smoothing",
    "positions",
    "average",
    "average_decay",
    "patience",
    "init_from",
    "from_arguments",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-dir",
        type=pathlib.Path,
        required=True,
        help="folder for the rows, each a run folder, and for the table",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="write the table of the rows that are there, and train nothing",
    )
    parser.add_argument(
        "--scale",
        type=positive(float),
        default=1.0,
        help="divides the widths d_model, d_ff, d_k and d_v (default: 1)",
    )
    parser.add_argument(
        "--layer-scale",
        type=positive(float),
        help="divides the layers N (default: that of --scale)",
    )
    parser.add_argument(
        "--steps",
        type=positive(int),
        default=PRESETS["base"].recipe.steps,
        help="updates of a row; big has three times as many, as in the paper "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of all rows (default: %(default)s)",
    )
    parser.add_argument(
        "--base-runs",
        type=positive(int),
        default=5,
        metavar="N",
        help="runs of base, with seeds of their own, that tell how much chance "
        "does: a row must differ from their mean by 15.6 of their standard "
        "deviations if there are 2, by 3.0 if there are 5 (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=ROWS,
        metavar="ROW",
        default=ROWS,
        help=f"some of {', '.join(ROWS)}; base comes always (default: all)",
    )


def order(rows: list[str], base_runs: int) -> dict[str, tuple[str, int]]:
    """Returns the preset and the seed's offset of each run, base first.

    The longest, big, is the last.
    """
    runs = {
        name: ("base", offset)
        for offset, name in enumerate(results.base_names(base_runs))
    }
    others = [name for name in rows if name not in ("base", "big")]
    runs.update((name, (name, 0)) for name in others)
    if "big" in rows:
        runs["big"] = ("big", 0)
    return runs


def scale_row(row: str, scale: float, layer_scale: float, steps: int) -> Preset:
    """Returns a row of the table with smaller numbers.

    Args:
        row: Its name among the presets.
        scale: Float that divides the widths; none falls below 1.
        layer_scale: Float that divides the layers; one is left at least.
        steps: Int, updates of the base model.
    """
    preset = PRESETS[row]
    changes = {
        name: shrink(getattr(preset.architecture, name), scale)
        for name in WIDTHS
    }
    return preset.replace(
        **changes,
        num_layers=shrink(preset.architecture.num_layers, layer_scale),
        steps=results.steps_of(row, steps),
    )


def shrink(size: int, scale: float) -> int:
    return max(1, int(size / scale + 0.5))


def broken_ratios(name: str, scaled: Preset, scaled_base: Preset) -> list[str]:
    """Tells which changed cells of a row have lost their ratio to base."""
    row, base = PRESETS[name], PRESETS["base"]
    lines = []
    for field in SIZES:
        here, paper = (
            fractions.Fraction(a.numbers()[field], b.numbers()[field])
            for a, b in ((scaled, scaled_base), (row, base))
        )
        if here != paper:
            lines.append(
                f"row {name}: {results.SYMBOLS[field]} is "
                f"{scaled.numbers()[field]} where base has "
                f"{scaled_base.numbers()[field]}, {here} of it and not {paper} "
                "as in the paper"
            )
    return lines


def make_command(
    args: argparse.Namespace, name: str, seed: int, scaled: Preset, rest: list
) -> list[str]:
    """Returns the arguments with which `python -m train` trains a row."""
    own = {
        "preset": name,
        **{size: scaled.numbers()[size] for size in SIZES},
        "steps": scaled.steps,
        "seed": seed,
        "average": 1,  # The paper averaged no checkpoints for this table.
    }
    given = [
        text for key, value in own.items() for text in (option(key), value)
    ]
    cache = ["--cache-dir", args.run_dir / "encoded"]
    return [str(text) for text in (*cache, *rest, *given)]


def check_rest(run_dir: pathlib.Path, rest: list[str]) -> None:
    """Refuses options of `python -m train` that the rows set themselves."""
    where = ["--run-dir", str(run_dir)]
    given, default = parse_arguments([*where, *rest]), parse_arguments(where)
    refused = [
        option(name)
        for name in FIXED
        if getattr(given, name) != getattr(default, name)
    ]
    if given.run_dir != default.run_dir:
        refused.append("--run-dir a second time")
    if refused:
        raise UserError(
            f"the rows of Table 3 set {', '.join(map(option, FIXED))} "
            f"themselves. Received: {', '.join(refused)}"
        )


def plan_rows(
    args: argparse.Namespace, rest: list[str]
) -> dict[str, tuple[list[str], Preset]]:
    """Returns the command line and the preset of each run."""
    check_rest(args.run_dir, rest)
    layer_scale = args.layer_scale or args.scale
    scales = args.scale, layer_scale, args.steps
    base = scale_row("base", *scales)
    plan = {}
    for name, (row, offset) in order(args.rows, args.base_runs).items():
        scaled = scale_row(row, *scales)
        for line in broken_ratios(row, scaled, base):
            print(line)
        command = make_command(args, row, args.seed + offset, scaled, rest)
        run_dir = ["--run-dir", str(args.run_dir / name)]
        plan[name] = ([*command, *run_dir], scaled)
    return plan


def is_done(command: list[str], corpora: tuple[Corpus, Corpus]) -> bool:
    """Tells whether a row is trained and its translations are there.

    Raises:
        UserError: If its folder holds a run of other arguments.
    """
    args = parse_arguments(command)
    preset = resolve(args, None)
    description = run_folder.describe(args, preset, *corpora)
    run_folder.find(args.run_dir, description)
    return results.translated_step(args.run_dir) == preset.recipe.steps


def translate_row(run_dir: pathlib.Path, corpus: Corpus, step: int) -> None:
    """Translates the validation set, as Section 6.1 does, into a file."""
    pairs = Pairs(*(list(side) for side in zip(*corpus, strict=True)))
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    proto = (run_dir / "tokenizer.model").read_bytes()
    search = ValidationBleu(pairs, proto, run_dir / "logs")
    search.set_model(types.SimpleNamespace(transformer=model))
    content = {
        "step": step,
        "translations": search.translate(),
        "references": pairs.targets,
    }
    text = json.dumps(content, ensure_ascii=False, indent=1)
    path = run_dir / results.TRANSLATIONS
    run_folder.write_atomically(path, text.encode())


def train_row(command: list[str], corpus: Corpus, preset: Preset) -> bool:
    """Trains and translates; returns whether the training came to its end."""
    try:
        train_command.main(command)
    except SystemExit as exit_:
        if exit_.code != 2:  # A signal: the command ends.
            raise
        return False
    translate_row(parse_arguments(command).run_dir, corpus, preset.recipe.steps)
    # Nothing of this model is needed by the next.
    keras.backend.clear_session()
    gc.collect()
    return True


def train_rows(args: argparse.Namespace, rest: list[str]) -> None:
    """Trains the rows that are missing, and writes the table after each.

    Raises:
        UserError: If an option is wrong, if the folder holds other rows, or,
            when all others are done, if a row could not be trained.
    """
    plan = plan_rows(args, rest)
    commands = [command for command, _ in plan.values()]
    first = parse_arguments(commands[0])
    resolve(first, None)
    corpora = sources.load_corpus(first)
    done = [is_done(command, corpora) for command in commands]
    failed = []
    for number, (name, there) in enumerate(zip(plan, done, strict=True), 1):
        command, preset = plan[name]
        print(
            f"row {number} of {len(plan)}, {name}: "
            + ("there" if there else "python -m train " + " ".join(command))
        )
        if there:
            continue
        if train_row(command, corpora[1], preset):
            report.write(args.run_dir, show=False)
        else:
            failed.append(name)
            if name == "base":
                break  # There is nothing to compare the others with.
    else:
        report.write(args.run_dir)
    if failed:
        raise UserError(
            "these rows could not be trained, for the reasons above, and are "
            f"not in the table: {', '.join(failed)}"
        )


def run(args: argparse.Namespace, rest: list[str]) -> None:
    if args.report:
        if rest:
            raise UserError(f"--report trains nothing. Received: {rest[0]}")
        report.write(args.run_dir)
        return
    with (
        signals.handled_by(signals.exit_now),
        run_folder.locked(args.run_dir),
    ):
        train_rows(args, rest)
