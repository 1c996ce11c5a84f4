"""The findings of Table 3, and tests of whether other numbers support them.

Two kinds of chance are weighed. The validation set is one of many: the middle
95 % of the differences in BLEU over 1,000 bootstrap samples of its sentences
(the same for all rows) must lie on one side. And a run is one of many: `n` runs
of base differ in their seed alone, with standard deviation `s`; one more run
would lie less than `t s √(1 + 1/n)` from their mean 19 times out of 20, with
`t` of Student's distribution, so the difference of a row to that mean must be
larger. The logarithm of perplexity is held to the second rule alone. A
difference that fails is too close to tell.
"""

import math
from typing import NamedTuple

import numpy as np
import sacrebleu

# The 97.5th percentile of Student's t for 1, 2, … degrees of freedom.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
SAMPLES = 1_000
# "Nearly identical" (Section 6.2): a point of BLEU, 5 % of perplexity.
NEARLY_EQUAL = {"bleu": 1.0, "log_perplexity": math.log(1.05)}


class Finding(NamedTuple):
    """A sentence on Table 3, and the pairs of rows that say it.

    The first row of a pair is worse, or with `equal` not different.
    """

    text: str
    pairs: list[list[str]]
    # Of perplexity, where they are others.
    perplexity_pairs: list[list[str]] | None = None
    equal: bool = False


def pairs(text: str) -> list[list[str]]:
    return [pair.split(" < ") for pair in text.split(", ")]


# The rows with 4 and 16 heads, dropout 0.2 and smoothing 0.2 stand in the table
# alone: the paper draws no conclusion from them.
FINDINGS = (
    Finding("one head is worse", pairs("a-h1 < base")),
    Finding("too many heads are worse", pairs("a-h32 < base")),
    Finding("a small d_k hurts", pairs("b-dk16 < base, b-dk32 < base")),
    Finding(
        "bigger is better",
        pairs(
            "c-n2 < base, c-n4 < base, base < c-n8, c-d256 < base, base < c-d1024, "
            "c-ff1024 < base, base < c-ff4096, base < big"
        ),
    ),
    Finding("dropout helps", pairs("d-drop0.0 < base")),
    Finding(
        "label smoothing helps BLEU and hurts perplexity",
        pairs("d-ls0.0 < base"),
        pairs("base < d-ls0.0"),
    ),
    Finding("learned positions change nothing", pairs("e-learned < base"), equal=True),
)


def sentence_counts(translations: list[str], references: list[str]) -> np.ndarray:
    """Returns what BLEU counts of each sentence, `(n, 10)`.

    That is: n-grams that are right and all n-grams, of four lengths each, and
    the lengths of translation and reference.
    """
    metric = sacrebleu.BLEU(effective_order=True)
    scores = [
        metric.sentence_score(translation, [reference])
        for translation, reference in zip(translations, references, strict=True)
    ]
    return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores])


def bleu(counts: np.ndarray) -> float:
    """Returns sacreBLEU's default BLEU of counts, added up."""
    counts = counts.tolist()
    return sacrebleu.BLEU.compute_bleu(
        counts[:4], counts[4:8], *counts[8:], smooth_method="exp"
    ).score


def resample(counts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the BLEU of bootstrap samples, the same sentences for all rows."""
    (size,) = {len(each) for each in counts.values()}
    random = np.random.default_rng(2017)
    weights = random.multinomial(size, np.full(size, 1 / size), SAMPLES)
    return {
        name: np.array([bleu(sample) for sample in weights @ each])
        for name, each in counts.items()
    }


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Returns the bounds of the middle 95 %."""
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def seed_margin(values: list[float]) -> float | None:
    """Returns how far chance drives a run from the mean of some others.

    It does not drive it farther 19 times out of 20. More than ten values are
    taken for ten, which makes the margin a little too wide; fewer than two
    give `None`.
    """
    count = len(values)
    if count < 2:
        return None
    t = STUDENT_T[min(count - 1, len(STUDENT_T)) - 1]
    return t * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / count)


def judge(
    difference: float,
    margin: float | None,
    bounds: tuple[float, float] | None = None,
    within: float | None = None,
) -> int:
    """Returns 1 if a difference supports a finding, -1 if it contradicts it.

    It supports one if it is above zero or, with `within`, nearer to zero than
    that. It is 0, too close to tell, where chance may have decided: the seed
    moves it by `margin`, and bootstrap samples of it lie in `bounds`.
    """
    if margin is None:
        return 0
    ends = (difference - margin, difference + margin, *(bounds or ()))
    low, high = min(ends), max(ends)
    if within is None:
        return int(low > 0) - int(high < 0)
    if -within <= low and high <= within:
        return 1
    return -1 if low > within or high < -within else 0


def verdict(signs: list[int]) -> str:
    """Returns what differences mean: 1 supports a finding, -1 contradicts it."""
    count, support, against = len(signs), signs.count(1), signs.count(-1)
    if support and against:
        return f"mixed: {support} of {count} for it, {against} against"
    if support:
        return "holds" + (f" in {support} of {count}" if support < count else "")
    if against and count > 1:
        return f"does not hold: {against} of {count} against"
    return "does not hold" if against else "too close to tell"
