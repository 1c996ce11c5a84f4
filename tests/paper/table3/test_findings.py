"""Tests of `paper.table3.findings` and of how the table judges them."""

import math

import numpy as np
import pytest
import sacrebleu

from keras_transformer import PRESETS
from paper.table3 import findings
from paper.table3.report import make_table
from paper.table3.rows import PAPER

LINES = [
    "A brown dog runs over the green grass.",
    "Two cats sleep, don't they?",
    "The woman reads a long letter to her old friend.",
    "",
    "Is it raining?",
] * 3


def shorten(every):
    """Returns the lines, each `every`th of them without its last words."""
    return [
        line if i % every else " ".join(line.split()[:-2])
        for i, line in enumerate(LINES)
    ]


def test_bleu_of_counts_is_that_of_sacrebleu():
    translations = shorten(2)
    counts = findings.sentence_counts(translations, LINES)

    expected = sacrebleu.corpus_bleu(translations, [LINES]).score
    assert 20 < expected < 90
    assert findings.bleu(counts.sum(axis=0)) == pytest.approx(expected)


def test_samples_draw_the_same_sentences_for_all_rows():
    counts = findings.sentence_counts(shorten(2), LINES)

    samples = findings.resample({"a": counts, "b": counts.copy()})

    np.testing.assert_array_equal(samples["a"], samples["b"])
    assert samples["a"].std() > 1


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_another_run_is_within_the_margin_19_times_of_20(count):
    runs = np.random.default_rng(3).normal(30, 0.4, size=(20_000, count + 1))

    margins = [findings.seed_margin(others) for others in runs[:, 1:]]

    away = np.abs(runs[:, 0] - runs[:, 1:].mean(axis=1))
    assert np.mean(away < margins) == pytest.approx(0.95, abs=0.005)
    assert findings.seed_margin([30.0]) is None


@pytest.mark.parametrize(
    ("difference", "margin", "bounds", "sign"),
    [
        (-0.2, 0.5, None, 1),
        (0.2, 0.9, None, 0),
        (1.2, 0.5, None, 0),
        (-1.8, 0.5, None, -1),
        (0.0, None, None, 0),
        (0.1, 0.4, (-0.8, 0.9), 1),
        (0.1, 0.4, (-1.2, 1.4), 0),
        (-2.0, 0.4, (-2.8, -1.2), -1),
        (-2.0, 0.4, (-2.8, -0.9), 0),
    ],
)
def test_equal_is_what_is_surely_less_than_a_bound(difference, margin, bounds, sign):
    assert findings.judge(difference, margin, bounds, within=1.0) == sign


@pytest.mark.parametrize(
    ("difference", "margin", "bounds", "sign"),
    [
        (1.0, 0.5, (0.2, 1.8), 1),
        (-1.0, 0.5, (-1.8, -0.2), -1),
        (1.0, 0.5, (-0.1, 2.0), 0),
        (-1.0, 0.5, (-2.0, 0.1), 0),
        (1.0, 1.5, (0.2, 1.8), 0),
        (1.0, None, (0.2, 1.8), 0),
        (0.1, 0.05, None, 1),
        (0.0, 0.0, None, 0),
    ],
)
def test_tells_only_what_both_kinds_of_chance_allow(difference, margin, bounds, sign):
    assert findings.judge(difference, margin, bounds) == sign


# Runs of base, and how far from it in BLEU.
OTHERS = {"base-run2": 0.1, "base-run3": -0.1, "base-run4": 0.05, "base-run5": -0.05}


def make_rows():
    """Returns rows with the paper's numbers, and four more runs of base."""
    perfect = findings.sentence_counts(LINES * 4, LINES * 4)
    rows = {}
    for name in ["base", *OTHERS, *list(PAPER)[1:]]:
        perplexity, bleu, _ = PAPER[name.split("-run")[0]]
        rows[name] = {
            "preset": PRESETS[name.split("-run")[0]],
            "perplexity": perplexity,
            "bleu": bleu,
            "parameters": 1,
            "minutes": 1.0,
            "conditions": "as in the paper",
            "counts": perfect,
        }
    for name, apart in OTHERS.items():
        rows[name]["bleu"] += apart
        rows[name]["perplexity"] *= math.exp(0.04 * apart)
    return rows


def by_text(report):
    return {(each["finding"], each["measure"]): each for each in report["findings"]}


def test_the_papers_own_perplexities_give_its_findings():
    told = by_text(make_table(make_rows()))

    expected = {
        "one head is worse": "holds",
        "too many heads are worse": "holds",
        "a small d_k hurts": "holds",
        # 4.88 against 4.92, for eight layers, is within the margin.
        "bigger is better": "holds in 7 of 8",
        "dropout helps": "holds",
        "label smoothing helps BLEU and hurts perplexity": "holds",
        "learned positions change nothing": "holds",
    }
    assert {text: told[text, "perplexity"]["in_ours"] for text in expected} == expected
    # In BLEU eight layers were worse.
    assert told["bigger is better", "bleu"]["in_the_paper"] == "7 of 8"
    assert told["one head is worse", "bleu"]["in_the_paper"] == "1 of 1"


def test_the_margin_comes_from_the_runs_of_base():
    report = make_table(make_rows())
    deviation = np.std([0.0, *OTHERS.values()], ddof=1)

    assert report["runs_of_base"] == 5
    margin = 2.776 * deviation * math.sqrt(6 / 5)
    assert report["margins"]["bleu"] == pytest.approx(margin)
    assert report["margins"]["log_perplexity"] == pytest.approx(0.04 * margin)


def test_a_finding_without_its_row_is_not_told():
    rows = make_rows()
    del rows["e-learned"], rows["c-n8"]
    report = make_table(rows)
    told = by_text(report)

    learned = told["learned positions change nothing", "perplexity"]
    assert learned["in_ours"] == "no row of it is there"
    assert told["bigger is better", "perplexity"]["in_ours"] == "holds"
    assert report["missing"] == ["c-n8", "e-learned"]
