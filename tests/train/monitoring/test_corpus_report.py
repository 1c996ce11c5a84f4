import json
import re

import numpy as np
import pytest

from command_line.errors import UserError
from keras_transformer import PRESETS
from text_processing.preprocessing_signs import SIGNS
from train.data.batch_plan import BatchPlan
from train.data.corpus import SIDES, Pairs
from train.data.encoded_corpus import encode_corpus
from train.data.encoding import hash_lines
from train.data.vocabulary import learn_vocabulary
from train.monitoring.corpus_report import (
    count_overlap,
    describe_training,
    find_warnings,
    refuse_known_validation,
    show_change,
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
def make_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    proto = learn_vocabulary(TRAINING, 310)

    def make(*corpora):
        corpora = [encode_corpus(corpus, proto, 60, folder) for corpus in corpora]
        plan = BatchPlan(corpora[0].pairs, 64, seed=0)
        return describe_training(*corpora, plan, 851_456, PRESETS["tiny"].recipe)

    return make


@pytest.fixture
def report(make_report):
    return make_report(TRAINING, VALIDATION)


def test_prints_a_new_report_and_writes_json(report, tmp_path, capsys):
    write_report(report, tmp_path)

    text = capsys.readouterr().out
    assert text.startswith("warning: 1 of the 3 validation pairs are in training: ")
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


SIGNS_OF_SIDES = [f"{side}_{name}" for side in SIDES for name in SIGNS]


@pytest.mark.parametrize(
    ("too_long", "copies", "steps", "expected"),
    [
        (10, 200, 101, []),
        (11, 0, 101, ["warning: 11% of the training pairs .* --max-length 256: "]),
        (10, 0, 100, ["warning: the learning rate rises until update 100"]),
        (10, 300, 101, ["warning: 30% of the .* have a source that is the target"]),
    ],
)
def test_warns_of_probable_mistakes(too_long, copies, steps, expected):
    figures = {"pairs": 100, "too_long": 0, "kept": 1_000, "source_lengths": [0] * 257}
    training = {**figures, "too_long": too_long, "round_trips": 0}
    training["source_equals_target"] = copies
    report = {
        "training": training | dict.fromkeys(SIGNS_OF_SIDES, 0),
        "validation": {**figures, "in_training": {"pairs": 10}},
        "model": {"steps": steps, "warmup_steps": 100},
    }

    found = find_warnings(report)

    for line, pattern in zip(found, expected, strict=True):
        assert re.match(pattern, line)


def test_warns_first_of_text_that_was_changed(make_report, tmp_path, capsys):
    changed = Pairs(
        ["a red house .", "two cats ."], ["Una casa &quot; roja", "Dos gatos."]
    )

    report = make_report(changed, VALIDATION)
    capsys.readouterr()

    write_report(report, tmp_path)

    assert capsys.readouterr().out.splitlines()[:4] == [
        "warning: sentences to translate must look as the training text does:",
        "  100% of the sources look tokenized (“ .”, “&apos;” or “@-@”)",
        "  100% of the sources begin with a lower-case letter",
        "  50% of the targets look tokenized (“ .”, “&apos;” or “@-@”)",
    ]


def test_refuses_validation_pairs_that_are_all_in_training(make_report):
    known = Pairs(["Two cats.", "Ex."], ["Gatos.", "Ex."])
    others = Pairs([*known.sources, "A house."], [*known.targets, "Una casa."])

    refuse_known_validation(make_report(TRAINING, others))
    with pytest.raises(UserError, match="--allow-.* Received: 2, all in training"):
        refuse_known_validation(make_report(TRAINING, known))


@pytest.mark.parametrize(
    ("line", "back", "shown"),
    [
        ("cat …", "cat ...", ["'cat …'", "'cat ...'"]),
        (
            "a" * 99 + "½" + "b" * 99,
            "a" * 99 + "1/2" + "b" * 99,
            [f"…'{'a' * 20}½{'b' * 39}'", f"…'{'a' * 20}1/2{'b' * 37}'"],
        ),
        ("cafe\u0301", "caf\u00e9", ["'cafe\\u0301'", "'caf\\xe9'"]),
        ("cats", "cat", ["'cats'", "'cat'"]),
    ],
)
def test_shows_where_a_line_was_changed(line, back, shown):
    assert show_change(line, back) == shown


def test_counts_overlap_by_chunks(monkeypatch):
    random = np.random.default_rng(0)
    sides, other = (random.integers(0, most, (500, 2)) for most in (40, 60))
    monkeypatch.setattr("train.monitoring.corpus_report.CHUNK", 64)
    hashes, validation = (
        np.stack([hash_lines(map(str, side)) for side in pairs.T], axis=1)
        for pairs in (sides, other)
    )

    pairs = set(map(tuple, sides.tolist()))
    assert count_overlap([hashes[:200], hashes[200:]], validation) == {
        "sources": int(np.isin(other[:, 0], sides[:, 0]).sum()),
        "pairs": sum(tuple(pair) in pairs for pair in other.tolist()),
    }
