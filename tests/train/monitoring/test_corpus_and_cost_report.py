"""Tests of `train.monitoring.corpus_and_cost_report`."""

import json
import re

import pytest
import tensorflow as tf

from keras_transformer import PRESETS, Transformer
from train.data.batch_plan import BatchPlan
from train.data.corpus import Pairs
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary
from train.loop.update_options import UpdateOptions
from train.monitoring.corpus_and_cost_report import (
    describe_training,
    format_report,
    warn_of_dropped_pairs,
    warn_of_idle_gpus,
    write_report,
)

TRAINING = Pairs(
    ["A red house.", "Two cats.", "Two cats.", "", "Ex."] * 4,
    ["Una casa roja.", "Dos gatos.", "Gatos.", "x", "Ex."] * 4,
)
VALIDATION = Pairs(
    ["Two cats.", "A red house.", "Other cats …"],
    ["Gatos.", "Una casa.", "Otros gatos."],
)


@pytest.fixture(scope="module")
def describe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    proto = learn_vocabulary(TRAINING, 310)
    corpora = [
        encode_corpus(corpus, proto, 60, folder) for corpus in (TRAINING, VALIDATION)
    ]
    preset = PRESETS["tiny"]
    model = Transformer.from_preset(preset, 310, sequence_length=60)
    model.build()

    def describe(update_options):
        plan = BatchPlan(corpora[0].pairs, update_options.batch_tokens, 0)
        return describe_training(*corpora, plan, model, preset.recipe, update_options)

    return describe


@pytest.fixture(scope="module")
def report(describe):
    return describe(UpdateOptions(64))


def test_says_what_the_text_is_like(report):
    text = format_report(report)

    assert "training: 20 pairs read, 16 kept, 4 empty and 0 too long" in text
    assert "12 came before, 4 have source = target" in text
    assert "in training too: 2 sources, 1 pairs" in text
    assert "0 of 32 lines" in text
    assert "1 of 6 lines that were decoded again came back changed" in text
    assert "'Other cats …' as 'Other cats ...'" in text
    bins = re.findall(r"^ *\d+-\d+ .*?([\d.]+)%.*?([\d.]+)%$", text, re.M)
    assert len(bins) > 2
    for side in zip(*bins, strict=True):
        assert sum(map(float, side)) == pytest.approx(100, abs=1)
    (passes,) = re.findall(r"updates \(([\d.]+) passes\)", text)
    batches = report["batches"]["batches_per_pass"]
    assert float(passes) == pytest.approx(report["model"]["steps"] / batches, abs=0.05)


def test_writes_json(report, tmp_path):
    write_report(report, tmp_path)

    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(json.dumps(report))
    model = report["model"]
    assert model["flops"] == model["flops_per_step"] * PRESETS["tiny"].recipe.steps


def test_the_memory_is_that_of_a_shape_in_its_own_turns(describe, report):
    """Of 24 rows of 2 tokens each turn takes 4, of 8 rows of 8 tokens one."""
    settings = UpdateOptions(64, max_tokens_per_replica=8)

    limited = describe(settings)

    at_once = limited["model"]["memory_bytes"]
    assert at_once["logits"] == 3 * 4 * 8 * 310
    assert at_once["logits"] < report["model"]["memory_bytes"]["logits"]


@pytest.mark.parametrize(
    ("device", "positions", "warned"),
    [
        ("GPU", 1_023, True),
        ("GPU", 1_024, False),
        ("GPU", 5_000, False),
        ("CPU", 1_023, False),
        (None, 1_023, False),
    ],
)
def test_warns_of_gpus_that_get_too_few_tokens(
    report, capsys, device, positions, warned
):
    strategy = (
        tf.distribute.OneDeviceStrategy(f"{device}:0")
        if device
        else tf.distribute.get_strategy()
    )
    batches = {**report["batches"], "positions_per_device": positions}

    warn_of_idle_gpus({**report, "batches": batches}, strategy)

    output = capsys.readouterr().out
    if warned:
        assert "a GPU gets 1,023 positions of a side an update" in output
        assert "--batch-tokens" in output
    assert output.count("\n") == warned


@pytest.mark.parametrize(("too_long", "warns"), [(10, False), (11, True)])
def test_many_pairs_that_are_too_long_are_a_warning(capsys, too_long, warns):
    figures = {"pairs": 100, "too_long": 0, "source_lengths": [0] * 257}
    report = {"training": {**figures, "too_long": too_long}}

    warn_of_dropped_pairs({**report, "validation": figures})

    output = capsys.readouterr().out
    expected = "warning: 11% of the training pairs are dropped, since they"
    assert output.startswith(expected) == warns
    assert ("--max-length 256" in output) == warns
