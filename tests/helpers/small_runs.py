"""Runs of `python -m train` that end within a second, and their corpus."""

import train.__main__ as train_command
from tests.helpers.refusal import refusal
from train.data.corpus import demo_pairs

SIZES = {
    "preset": "tiny",
    "num-layers": 1,
    "hidden-dim": 8,
    "intermediate-dim": 8,
    "num-heads": 1,
    "key-dim": 8,
    "value-dim": 8,
    "vocabulary-size": 340,
    "batch-tokens": 64,
    "steps": 3,
    "round-steps": 2,
    "average": 2,
    "max-length": 90,
}
TINY = [f"--{name}={value}" for name, value in SIZES.items()]
OPTIONS = [*TINY, "--steps=24", "--round-steps=6", "--dropout=0.3"]


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


def refused(capsys, arguments):
    """Returns the line in which `python -m train` refuses its arguments."""
    return refusal(capsys, train_command.main, arguments)
