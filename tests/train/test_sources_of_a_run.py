"""Runs of `python -m train` on a mixture, and on a set of TFDS."""

import importlib.resources
import sys

import pytest
import tensorflow_datasets as tfds

import train.__main__ as train_command
from tests.helpers.small_runs import TINY_OPTIONS
from train.data.corpus import demo_pairs


@pytest.fixture
def pairs():
    found = demo_pairs("validation")
    return list(zip(found.sources[:60], found.targets[:60], strict=True))


def counts_of(capsys, options):
    """Trains; returns the lines with the number of pairs that were read."""
    train_command.main([*map(str, options), *TINY_OPTIONS, "--steps=1"])
    said = capsys.readouterr().out
    return [line for line in said.splitlines() if " pairs read, " in line]


@pytest.mark.slow
def test_a_run_on_a_set_of_tfds(pairs, tmp_path, capsys, monkeypatch):
    # TFDS 4.9.10 needs this package and does not ask pip for it.
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)
    # The real builder writes and reads its files; only its text is ours.
    name = "ted_hrlr_translate/pt_to_en"
    builder = tfds.builder(name, data_dir=tmp_path)
    text = [{"pt": source, "en": target} for source, target in pairs]
    splits = {"train": enumerate(text), "validation": enumerate(text[:9])}
    monkeypatch.setattr(builder, "_split_generators", lambda _: splits)
    builder.download_and_prepare()

    training, validation = counts_of(
        capsys,
        [
            *("--dataset", f"tfds:{name}", "--data-dir", tmp_path),
            *("--train-split", "train[:50%]", "--run-dir", tmp_path / "run"),
        ],
    )

    assert "30 pairs read" in training
    assert "9 pairs read" in validation
    assert (tmp_path / "run" / "model.keras").exists()
