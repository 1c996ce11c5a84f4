"""Keeps `benchmarks.training` alive, at toy size."""

import importlib
import math

import pytest

from benchmarks.constants import SIZES
from benchmarks.training import __main__ as training
from benchmarks.training.random_batches import make_batch
from benchmarks.training.worker import SYSTEMS, start


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        "package",
        pytest.param("pytorch", marks=pytest.mark.peers("torch")),
        pytest.param("keras-hub", marks=pytest.mark.peers("keras_hub")),
    ],
)
def test_an_update_changes_the_loss(system):
    module, load = SYSTEMS[system]
    module = importlib.import_module(f"benchmarks.training.{module}")
    prepare, update = getattr(module, load)(SIZES["check"], "float32")
    batch = prepare(make_batch(SIZES["check"], fill=0.75))

    first, second = update(batch, 1), update(batch, 2)

    # That of equal probabilities is log(100) = 4.6.
    assert all(math.isfinite(loss) and 4 < loss < 7 for loss in (first, second))
    assert first != second


@pytest.mark.slow
def test_only_real_tokens_are_counted():
    options = {"system": "package", "size": "check", "precision": "float32", "steps": 1}
    package = start(options)

    partial, full = (package(fill)["target_tokens"] for fill in ("0.75", "1.0"))
    assert partial < full == 64


@pytest.mark.slow
@pytest.mark.peers("torch")
def test_updates_are_measured_side_by_side(capsys):
    training.main(
        [
            *("--sizes=check", "--precisions=float32"),
            *("--systems", "package", "pytorch", "--repetitions=2", "--steps=1"),
        ]
    )

    table = capsys.readouterr().out.strip()
    _, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines())
    assert [row[:4] for row in rows] == [
        ["check", "float32", fill, system]
        for fill in ("0.75", "1.0")
        for system in ("package", "pytorch")
    ]
    assert [int(row[4]) >= 1 for row in rows] == [True] * 4
    assert ["×" in row[7] for row in rows] == [False, True] * 2
