"""Labelled bracketing scores, by the rules of evalb's COLLINS.prm.

A constituent matches if the other tree has one with the same label and words.
The root, traces, function tags and punctuation are ignored, and constituents
that hold nothing else; `ADVP` and `PRT` count as one label. A constituent that
occurs `n` times in one tree and `m` times in the other matches `min(n, m)`
times.
"""

import collections
import itertools
from collections.abc import Iterable

from text_processing.trees import Tree

PUNCTUATION = {",", ":", "``", "''", "."}
SAME_LABEL = {"PRT": "ADVP"}


def count_brackets(gold: Tree, parse: Tree) -> tuple[int, int, int]:
    """Returns how many constituents match, and those of `gold` and of `parse`.

    The tags of `gold` decide which words are punctuation, since a model may write
    other tags.

    Raises:
        ValueError: If the trees do not have the same words.
    """
    if gold.words != parse.words:
        raise ValueError(
            "`gold` and `parse` must have the same words. Received: "
            f"gold.words={gold.words}, parse.words={parse.words}"
        )
    kept = [tag not in PUNCTUATION for tag in gold.tags]
    places = list(itertools.accumulate(kept, initial=0))
    found = [
        collections.Counter(
            (SAME_LABEL.get(label, label), places[start], places[end])
            for label, start, end in tree.constituents()
            if places[start] < places[end]
        )
        for tree in (gold, parse)
    ]
    return (found[0] & found[1]).total(), found[0].total(), found[1].total()


def score(pairs: Iterable[tuple[Tree, Tree]]) -> dict[str, float]:
    """Returns the scores of pairs of a reference tree and a parse, in per cent.

    They are `"f1"`, `"precision"` and `"recall"` over the constituents of all
    sentences, 0 where there are none, and `"complete_match"`, the share of the
    sentences in which all constituents match; one of punctuation alone is such a
    sentence, though evalb skips it.
    """
    counts = [count_brackets(*pair) for pair in pairs]
    matched, gold, parsed = (sum(column) for column in zip(*counts, strict=True))
    complete = sum(len(set(row)) == 1 for row in counts)
    return {
        "f1": to_percent(2 * matched, gold + parsed),
        "precision": to_percent(matched, parsed),
        "recall": to_percent(matched, gold),
        "complete_match": to_percent(complete, len(counts)),
    }


def to_percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
