import collections
import functools
import math
import sys

import numpy as np
import pytest
import sacrebleu
import sacremoses

from command_line.errors import UserError
from translate import translation_scores

REFERENCES = [
    "Ein Mann steht vor der U-Bahn-Station in Berlin-Mitte.",
    "Zwei Hunde laufen über die grüne Wiese.",
    'Das Mädchen sagt: "Komm, wir gehen!"',
    "Eine Frau liest einen langen Brief im Garten.",
] * 5
TRANSLATIONS = [
    "Ein Mann steht vor der U-Bahn-Station in Berlin.",
    "Zwei Hunde laufen über das grüne Gras.",
    'Das Mädchen sagt: "Komm mit, wir gehen!"',
    "Eine Frau liest einen langen Brief in dem Garten.",
] * 5


def multi_bleu(translations, references):
    """Returns Papineni's BLEU (2002) of tokens, as multi-bleu.perl does."""
    right, total = [0] * 4, [0] * 4
    lengths = [0, 0]
    for lines in zip(translations, references, strict=True):
        tokens = [line.split() for line in lines]
        lengths = [a + len(b) for a, b in zip(lengths, tokens, strict=True)]
        for n in range(1, 5):
            ours, theirs = (
                collections.Counter(
                    tuple(side[i : i + n]) for i in range(len(side) - n + 1)
                )
                for side in tokens
            )
            right[n - 1] += (ours & theirs).total()
            total[n - 1] += ours.total()
    if not all(right):
        return 0.0
    precision = np.mean(np.log(np.array(right) / total))
    penalty = min(0.0, 1 - lengths[1] / lengths[0])
    return 100 * math.exp(precision + penalty)


def test_scores_are_those_of_sacrebleu():
    translations = ["the cat sat on a mat .", "a dog runs fast today"]
    references = ["the cat sat on the mat .", "A dog runs very fast"]

    results = translation_scores.score(translations, references)

    bleu = sacrebleu.corpus_bleu(translations, [references])
    lower = sacrebleu.corpus_bleu(translations, [references], lowercase=True)
    chrf = sacrebleu.corpus_chrf(translations, [references])
    assert results["bleu"]["score"] == bleu.score
    assert results["bleu_lowercase"]["score"] == lower.score
    assert results["chrf"]["score"] == chrf.score


def test_bleu_counts_the_tokens_that_are_asked_for():
    translations, references = ["我们今天去学校。"], ["我们今天去学校吧。"]

    plain = translation_scores.score(translations, references)
    results = translation_scores.score(translations, references, tokenize="zh")

    bleu = sacrebleu.corpus_bleu(translations, [references], tokenize="zh")
    assert results["bleu"]["score"] == bleu.score > 50
    assert plain["bleu"]["score"] == 0
    for name in ("bleu", "bleu_lowercase"):
        assert "|tok:zh|" in results[name]["signature"]
    assert results["chrf"] == plain["chrf"]


# By the rules of tokenizer.perl for German, and those of the compounds.
SPLIT = {
    "Ein Mann steht vor der U-Bahn-Station in Berlin-Mitte.": "Ein Mann steht "
    "vor der U ##AT##-##AT## Bahn ##AT##-##AT## Station in Berlin "
    "##AT##-##AT## Mitte .",
    'Das Mädchen sagt: "Komm, wir gehen!"': "Das Mädchen sagt : &quot; Komm , "
    "wir gehen ! &quot;",
    "Er läuft 3,5 km (z.B. um 10.30 Uhr) …": "Er läuft 3,5 km ( z.B. um 10.30 Uhr ) …",
    "A & B's <i>": "A &amp; B &apos; s &lt; i &gt;",
    "": "",
}


@pytest.mark.parametrize("line", SPLIT)
def test_splits_as_the_script_does(line):
    split, note = translation_scores.load_splitter("de")

    assert split(line) == SPLIT[line]
    assert note.startswith("|moses:de|split:atat|sacremoses:")


def test_the_papers_bleu_is_that_of_its_definition():
    found = translation_scores.score(TRANSLATIONS, REFERENCES, "de")
    split, _ = translation_scores.load_splitter("de")
    tokenize = functools.partial(
        sacremoses.MosesTokenizer("de").tokenize, return_str=True
    )
    scores = []
    for name, cut in (
        ("bleu_paper", split),
        ("bleu_moses", lambda line: tokenize(line.lower())),
    ):
        sides = [list(map(cut, side)) for side in (TRANSLATIONS, REFERENCES)]
        scores.append(found[name]["score"])
        assert scores[-1] == pytest.approx(multi_bleu(*sides))
        assert 20 < scores[-1] < 90
        assert "tok:none|smooth:none" in found[name]["signature"]
    # Compounds are worth more tokens, and both are no other BLEU.
    assert abs(scores[0] - multi_bleu(TRANSLATIONS, REFERENCES)) > 1
    assert scores[0] != pytest.approx(scores[1])
    assert "|moses:de|split:atat|" in found["bleu_paper"]["signature"]
    assert "|case:lc|" in found["bleu_moses"]["signature"]
    assert "split:atat" not in found["bleu_moses"]["signature"]


def test_intervals_are_about_those_of_another_bootstrap():
    result = translation_scores.score(TRANSLATIONS, REFERENCES, confidence=True)
    pairs = np.array([TRANSLATIONS, REFERENCES])
    samples = pairs[:, np.random.default_rng(2017).integers(20, size=(400, 20))]
    scores = [
        sacrebleu.corpus_bleu(ours.tolist(), [theirs.tolist()]).score
        for ours, theirs in zip(*samples, strict=True)
    ]
    low, high = np.percentile(scores, [2.5, 97.5])

    bounds = result["bleu"]["confidence"]
    width = bounds["high"] - bounds["low"]
    assert width == pytest.approx(high - low, rel=0.15)
    plain = translation_scores.score(TRANSLATIONS, REFERENCES)
    for name in ("bleu", "bleu_lowercase", "chrf"):
        value = result[name]["score"]
        assert value == pytest.approx(plain[name]["score"])
        bounds = result[name]["confidence"]
        assert bounds["low"] < value < bounds["high"]
        assert "bs:1000" in result[name]["signature"]
        assert "confidence" not in plain[name]


def test_refuses_a_language_that_moses_does_not_know(monkeypatch):
    with pytest.raises(UserError, match=r"de, el, en.*Received: deutsch"):
        translation_scores.score(["a"], ["a"], "deutsch")
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UserError, match="--paper-bleu needs the extra `train`: pip"):
        translation_scores.score(["a"], ["a"], "de")
