"""Tests of `train.watch.report`."""

import json

import pytest

from keras_transformer import PRESETS
from train.data.corpus import Pairs
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary
from train.loop.settings import FitSettings
from train.watch.report import describe_training
from train.watch.report import format_report
from train.watch.report import write_report

TRAINING = Pairs(
    ["A red house.", "Two cats.", "Two cats.", "", "Ex."] * 4,
    ["Una casa roja.", "Dos gatos.", "Gatos.", "x", "Ex."] * 4,
)
VALIDATION = Pairs(
    ["Two cats.", "A red house.", "Other cats …"],
    ["Gatos.", "Una casa.", "Otros gatos."],
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    proto = learn_vocabulary(TRAINING, 310)
    training, validation = (
        encode_corpus(corpus, proto, 60, folder)
        for corpus in (TRAINING, VALIDATION)
    )
    return describe_training(
        training, validation, PRESETS["tiny"], 310, 60, FitSettings(64)
    )


def test_says_what_the_text_is_like(report):
    text = format_report(report)

    assert "training: 20 pairs read, 16 kept, 4 empty and 0 too long" in text
    assert "12 came before, 4 have source = target" in text
    assert "in training too: 2 sources, 1 pairs" in text
    assert "0 of 32 lines" in text
    assert "1 of 6 lines that were decoded again came back changed" in text
    assert "'Other cats …' as 'Other cats ...'" in text
    assert "left out" not in text


def test_says_that_the_learning_rate_only_rises(report):
    model = {**report["model"], "steps": 300, "warmup_steps": 300}

    assert "learning rate" not in format_report(report)
    text = format_report({**report, "model": model})
    assert "the learning rate rises until update 300, and so to the end" in text


def test_bars_show_each_range_of_lengths(report):
    lines = format_report(report).splitlines()
    start = next(i for i, line in enumerate(lines) if "sources" in line[:20])
    shares = {"sources": [], "targets": []}
    for line in lines[start + 1 :]:
        if ("#" not in line and "%" not in line) or ":" in line:
            break
        first, second = [part for part in line.split() if "%" in part]
        shares["sources"].append(float(first[:-1]))
        shares["targets"].append(float(second[:-1]))

    assert len(shares["sources"]) > 3
    for side in shares.values():
        assert sum(side) == pytest.approx(100, abs=0.5)


def test_writes_json_and_a_picture(report, tmp_path):
    write_report(report, tmp_path)

    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(report))
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    model = report["model"]
    assert (
        model["flops"] == model["flops_per_step"] * PRESETS["tiny"].recipe.steps
    )


def test_names_pairs_that_a_weight_leaves_out(report):
    figures = {**report["training"], "left_out": 1234}

    text = format_report({**report, "training": figures})

    assert "1,234 left out by their weight" in text
