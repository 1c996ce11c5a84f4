"""Runs `python -m train` on a tiny corpus."""

import keras
import numpy as np

import train.__main__ as train_command
from tests.helpers.error_capture import refusal
from train.data.corpus import demo_pairs
from train.run.run_folder import read_history

SIZES = {
    "preset": "tiny",
    "recipe": "paper",
    "num-layers": 1,
    "hidden-dim": 8,
    "intermediate-dim": 8,
    "num-heads": 1,
    "key-dim": 8,
    "value-dim": 8,
    "vocabulary-size": 340,
    "batch-tokens": 64,
    "steps": 3,
    "steps-per-epoch": 2,
    "average": 2,
    "max-length": 90,
    "validate-bleu": 0,  # A search takes as long as all the rest.
}
TINY_OPTIONS = [f"--{name}={value}" for name, value in SIZES.items()]
# Columns of a history that no run repeats.
VOLATILE = ("tokens_per_second", "minutes_left")
OPTIONS = [*TINY_OPTIONS, "--steps=24", "--steps-per-epoch=6", "--dropout=0.3"]


def write_corpus(folder):
    """Writes four small files, one with a line to drop.

    Returns:
        The options that name them.
    """
    pairs = demo_pairs("validation")
    options = []
    for name, lines in (
        ("train-source", ["", *pairs.sources[:60]]),
        ("train-target", ["x", *pairs.targets[:60]]),
        ("validation-source", pairs.sources[60:70]),
        ("validation-target", pairs.targets[60:70]),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [f"--{name}", str(folder / name)]
    return options


def load_weights(path):
    """All arrays of a model's file."""
    return keras.saving.load_model(path, compile=False).get_weights()


def assert_same_run(run_dir, other):
    """Checks that histories, but for speed, and models are equal to a bit."""
    rows, others = (
        [{k: v for k, v in row.items() if k not in VOLATILE} for row in rows]
        for rows in map(read_history, (run_dir, other))
    )
    assert rows == others
    for a, b in zip(
        *(load_weights(run / "model.keras") for run in (run_dir, other)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def refused(capsys, arguments):
    """Returns the line in which `python -m train` refuses its arguments."""
    return refusal(capsys, train_command.main, arguments)
