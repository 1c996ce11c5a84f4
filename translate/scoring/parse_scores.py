"""Repairs and scores the trees that a parsing model writes (Section 6.3)."""

import collections
from collections.abc import Iterable, Iterator

from text_processing.tree_repair import repair_tree
from text_processing.trees import Tree
from translate.scoring import bracket_scores


def repair_trees(
    sentences: Iterable[bytes], outputs: Iterable[bytes], repairs: collections.Counter
) -> Iterator[bytes]:
    """Yields repaired trees in Penn Treebank form, one a line.

    Counts in `repairs` what `repair_tree` repaired, the trees (`"parses"`), and the
    malformed ones (`"malformed"`). The words of `sentences` are separated by blanks.
    """
    for sentence, output in zip(sentences, outputs, strict=True):
        words = [decode_utf8(word) for word in sentence.split()]
        tree = repair_counted(decode_utf8(output), words, repairs)
        yield str(tree).encode() if words else b""


def decode_utf8(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


def repair_counted(
    output: str, words: Iterable[str], repairs: collections.Counter
) -> Tree:
    tree, found = repair_tree(output, words)
    repairs.update(["parses", *found])
    repairs["malformed"] += bool(found)
    return tree


def describe_repairs(repairs: collections.Counter) -> str:
    """Returns a line that counts the repairs."""
    kinds = sorted(repairs.keys() - {"parses", "malformed"})
    listed = ", ".join(f"{kind} {repairs[kind]:,}" for kind in kinds)
    return (
        f"{repairs['malformed']:,} of {repairs['parses']:,} parses malformed "
        f"and repaired{f' ({listed})' if listed else ''}"
    )


def score(trees: list[Tree], outputs: Iterable[str]) -> dict[str, object]:
    """Returns the scores of outputs in per cent, and the counts of repairs, as JSON."""
    repairs = collections.Counter()
    parses = [
        repair_counted(output, tree.words, repairs)
        for tree, output in zip(trees, outputs, strict=True)
    ]
    return {
        **bracket_scores.score(zip(trees, parses, strict=True)),
        "rules": "labelled brackets as in evalb's COLLINS.prm",
        "malformed": bracket_scores.to_percent(repairs["malformed"], len(trees)),
        "repaired": dict(repairs),
    }


def describe_scores(results: dict[str, object]) -> list[str]:
    titles = {
        "f1": "F1",
        "precision": "precision",
        "recall": "recall",
        "complete_match": "complete match",
        "malformed": "malformed",
    }
    lines = [f"{title:18}{results[name]:6.2f}" for name, title in titles.items()]
    lines[0] += f"  {results['rules']}"
    lines[-1] += f"  {describe_repairs(collections.Counter(results['repaired']))}"
    return lines
