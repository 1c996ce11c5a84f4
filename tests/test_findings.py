"""Tests of `train.findings` and of how the table judges them."""

import math

import numpy as np
import pytest
import sacrebleu

from keras_transformer import PRESETS
from train import findings
from train.table3_report import format_table
from train.table3_report import make_report
from train.table3_results import PAPER

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


def test_the_interval_is_about_that_of_sacrebleu():
    translations = shorten(3)
    counts = findings.sentence_counts(translations, LINES)
    score = sacrebleu.BLEU().corpus_score(
        translations, [LINES], n_bootstrap=1000
    )

    samples = findings.resample({"a": counts})["a"]
    low, high = findings.interval(samples)

    # sacreBLEU tells the mean of the samples and half of the interval.
    assert (high - low) / 2 == pytest.approx(score._ci, rel=0.15)
    assert samples.mean() == pytest.approx(score._mean, rel=0.02)


def test_the_margin_holds_for_19_of_20_pairs_of_runs():
    runs = np.random.default_rng(3).normal(30, 0.4, size=20_000)

    margin = findings.seed_margin(list(runs))

    apart = np.abs(runs[::2] - runs[1::2])
    assert np.mean(apart < margin) == pytest.approx(0.95, abs=0.01)
    assert findings.seed_margin([30.0]) is None


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
def test_tells_only_what_both_kinds_of_chance_allow(
    difference, margin, bounds, sign
):
    assert findings.tell(difference, margin, bounds) == sign


@pytest.mark.parametrize(
    ("signs", "equal", "text"),
    [
        ([1], False, "holds"),
        ([1, 0], False, "holds in 1 of 2"),
        ([0, 0], False, "too close to tell"),
        ([-1], False, "does not hold"),
        ([-1, 0], False, "does not hold: 1 of 2 against"),
        ([1, -1, 0], False, "mixed: 1 of 3 for it, 1 against"),
        ([0], True, "holds: no clear difference"),
        ([-1], True, "does not hold"),
        ([1], True, "does not hold"),
    ],
)
def test_says_what_the_differences_mean(signs, equal, text):
    assert findings.verdict(signs, equal) == text


def make_rows(**worse):
    """Returns rows with the paper's numbers, and a second run of base.

    Translations of the rows in `worse` lack as many words.
    """
    perfect = findings.sentence_counts(LINES * 4, LINES * 4)
    rows = {}
    for name in ["base", "base-run2", *list(PAPER)[1:]]:
        perplexity, bleu, _ = PAPER[name.split("-run")[0]]
        rows[name] = {
            "preset": PRESETS[name.split("-run")[0]],
            "perplexity": perplexity,
            "bleu": bleu,
            "parameters": 1,
            "minutes": 1.0,
            "counts": perfect,
        }
    rows["base-run2"]["bleu"] += 0.1
    rows["base-run2"]["perplexity"] *= 1.005
    return rows


def by_text(report):
    return {
        (each["finding"], each["measure"]): each for each in report["findings"]
    }


def test_the_papers_own_perplexities_give_its_findings():
    told = by_text(make_report(make_rows()))

    expected = {
        "one head is worse": "holds",
        "a small d_k hurts": "holds",
        # 4.88 against 4.92, for eight layers, is within the margin.
        "bigger is better": "holds in 7 of 8",
        "dropout helps": "holds",
        "label smoothing helps BLEU and hurts perplexity": "holds",
        "learned positions change nothing": "holds: no clear difference",
    }
    assert {
        text: told[text, "perplexity"]["in_ours"] for text in expected
    } == expected
    # In BLEU eight layers were worse.
    assert told["bigger is better", "bleu"]["in_the_paper"] == "7 of 8"
    assert told["one head is worse", "bleu"]["in_the_paper"] == "1 of 1"


def test_bleu_needs_the_bootstrap_too():
    rows = make_rows()
    # By BLEU alone one head is 0.9 worse; the sentences do not differ.
    assert by_text(make_report(rows))["one head is worse", "bleu"]["signs"] == [
        0
    ]

    rows["a-h1"]["counts"] = findings.sentence_counts(shorten(2) * 4, LINES * 4)
    assert by_text(make_report(rows))["one head is worse", "bleu"]["signs"] == [
        1
    ]


def test_the_margin_comes_from_the_runs_of_base():
    report = make_report(make_rows())
    deviation = 0.1 / math.sqrt(2)  # Of two numbers that are 0.1 apart.

    assert report["runs_of_base"] == 2
    assert report["margins"]["bleu"] == pytest.approx(
        1.96 * math.sqrt(2) * deviation
    )
    assert "two runs 0.20 BLEU" in format_table(report)


def test_a_finding_without_its_row_is_not_told():
    rows = make_rows()
    del rows["e-learned"], rows["c-n8"]
    report = make_report(rows)
    told = by_text(report)

    learned = told["learned positions change nothing", "perplexity"]
    assert learned["in_ours"] == "no row of it is there"
    assert told["bigger is better", "perplexity"]["in_ours"] == "holds"
    assert report["missing"] == ["c-n8", "e-learned"]
    assert "Not there yet: c-n8, e-learned." in format_table(report)
