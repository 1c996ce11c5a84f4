"""Tests of `train.table3`: the rows, scaled and trained."""

import dataclasses
import json
import math

import numpy as np
import pytest
import sacrebleu

from keras_transformer import PRESETS
from train import reproduce
from train import table3
from train import table3_results
from train.corpus import demo_pairs
from train.options import positive  # noqa: F401
from train.table3 import broken_ratios
from train.table3 import scale_row

TOY = "--scale 64 --layer-scale 6 --steps 2 --vocabulary-size 340"
TOY += " --batch-tokens 64 --max-length 90 --round-steps 1"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Options that name four small files."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = demo_pairs("validation")
    options = []
    for name, lines in (
        ("train-source", pairs.sources[:60]),
        ("train-target", pairs.targets[:60]),
        ("validation-source", pairs.sources[60:66]),
        ("validation-target", pairs.targets[60:66]),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [f"--{name}", str(folder / name)]
    return options


def reproduce_rows(run_dir, corpus, *options):
    reproduce.main(
        ["table3", "--run-dir", str(run_dir), *TOY.split(), *corpus, *options]
    )


@pytest.fixture(scope="module")
def table_dir(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("table")
    reproduce_rows(run_dir, corpus, "--rows", "d-drop0.0")
    return run_dir


def test_x(table_dir):
    print((table_dir / "table3.md").read_text())
    assert 0
