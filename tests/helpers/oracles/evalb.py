"""Runs PYEVALB with the parameter file COLLINS.prm.

PYEVALB 0.1.3 reads no parameters. It compares all constituents, the root among
them, and of one that comes twice in both trees it sees one match. So this
module prepares PYEVALB's trees as evalb does ("More details about the scoring
algorithm" in its README).
"""

import re

from PYEVALB import parser, scorer
from PYEVALB.summary import Result
from PYEVALB.tree import Node, Tree

COLLINS = """
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
EQ_LABEL ADVP PRT
"""
RULES = [line.split() for line in COLLINS.split("\n") if line]
DELETED = {labels[0] for rule, *labels in RULES if rule == "DELETE_LABEL"}
EQUAL = {labels[1]: labels[0] for rule, *labels in RULES if rule == "EQ_LABEL"}


def count(gold: str, parse: str) -> Result:
    """Compares two trees, in Penn Treebank form with a root."""
    result = scorer.Scorer().score_trees(parse_for_evalb(gold), parse_for_evalb(parse))
    # Less the root, which has the same words in both.
    result.matched_brackets -= 1
    result.gold_brackets -= 1
    result.test_brackets -= 1
    return result


def parse_for_evalb(text: str) -> Tree:
    # evalb calls the root TOP, treebanks ROOT or S1. PYEVALB needs a root.
    root = make_node("TOP", parser.create_from_bracket_string(text).root.children)
    return Tree(number_duplicates(make_node("TOP", remove_deleted_labels(root))))


def make_node(label: str, children: list[Node]) -> Node:
    node = Node(label)
    node.children = children
    return node


def remove_deleted_labels(node: Node) -> list[Node]:
    """Returns what is left of a node: itself, its children, or nothing."""
    if node.isPos():
        return [] if node.value in DELETED else [node]
    children = [
        left for child in node.children for left in remove_deleted_labels(child)
    ]
    label = re.sub("[-=].*", "", node.value)
    if not children or label in DELETED:
        return children
    return [make_node(EQUAL.get(label, label), children)]


def number_duplicates(node: Node, above: tuple[str, ...] = ()) -> Node:
    """Numbers constituents of the same label and words, which sets unite.

    Of `n` in one tree and `m` in the other, `min(n, m)` have the same number. `above`
    are the labels of the nodes above that have the same words.
    """
    if node.isPos():
        return node
    labels = (*above, node.value)
    below = labels if len(node.children) == 1 else ()
    return make_node(
        f"{node.value}{labels.count(node.value)}",
        [number_duplicates(child, below) for child in node.children],
    )
