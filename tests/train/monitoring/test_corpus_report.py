import json
import re

import pytest

from keras_transformer import PRESETS
from train.data.batch_plan import BatchPlan
from train.data.corpus import Pairs
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary
from train.monitoring.corpus_report import (
    describe_training,
    find_warnings,
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
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    proto = learn_vocabulary(TRAINING, 310)
    corpora = [
        encode_corpus(corpus, proto, 60, folder) for corpus in (TRAINING, VALIDATION)
    ]
    plan = BatchPlan(corpora[0].pairs, 64, seed=0)
    return describe_training(*corpora, plan, 851_456, PRESETS["tiny"].recipe)


def test_prints_a_new_report_and_writes_json(report, tmp_path, capsys):
    write_report(report, tmp_path)

    text = capsys.readouterr().out
    assert "20 pairs read, 16 kept, 4 empty and 0 too long" in text
    assert "in training too: 2 sources, 1 pairs" in text
    assert "1 of 6 lines that were decoded again came back changed" in text
    assert "warning: 16 training pairs are few" in text
    written = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(json.dumps(report))
    write_report(report, tmp_path)
    assert capsys.readouterr().out == ""
    more = {**report, "model": {**report["model"], "steps": 9_000}}
    write_report(more, tmp_path)
    assert " 9,000 updates" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("too_long", "steps", "expected"),
    [
        (10, 101, []),
        (11, 101, ["warning: 11% of the training pairs .* --max-length 256: "]),
        (10, 100, ["warning: the learning rate rises until update 100"]),
    ],
)
def test_warns_of_probable_mistakes(too_long, steps, expected):
    figures = {"pairs": 100, "too_long": 0, "kept": 1_000, "source_lengths": [0] * 257}
    report = {
        "training": {**figures, "too_long": too_long},
        "validation": figures,
        "model": {"steps": steps, "warmup_steps": 100},
    }

    found = find_warnings(report)

    for line, pattern in zip(found, expected, strict=True):
        assert re.match(pattern, line)
