"""Finds the words of a translation that each tag belongs to.

A tag's words are the run of target words with the most attention to its source
words. Each word counts its share of attention minus a half. Runs of nested tags
are nested, and runs of adjacent tags are disjoint.
"""

import dataclasses

import numpy as np

from export.markup.word_alignment import Word

# The share of attention with which a single word may be a tag's run.
LEAST_SHARE = 0.1


@dataclasses.dataclass(eq=False)
class Node:
    """A tag with its content, or a leaf that is put back unchanged.

    Attributes:
        start: Int, where it begins in the sentence, in characters.
        end: Int, where it ends; a node without text ends where it begins.
        before: String that opens it; `None` if an earlier sentence opens it.
        after: String that closes it; `None` if a later sentence closes it.
        verbatim: String that replaces the translation of its content.
        children: The nodes in it.
        touches: Whether text, and no blank, precedes and follows it.
        fixed: Indices of its words in the translation, if they are known.
        run: Index of the first target word, and of the first one after it.
    """

    start: int
    end: int
    before: str | None = ""
    after: str | None = ""
    verbatim: str | None = None
    children: list["Node"] = dataclasses.field(default_factory=list)
    touches: tuple[bool, bool] = (False, False)
    fixed: tuple[int, int] | None = None
    run: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        sources: Words of the sentence.
        targets: Words of the translation.
        weights: Float array `(targets, sources)`.
    """

    sources: list[Word]
    targets: list[Word]
    weights: np.ndarray

    def shares(self, node: Node) -> np.ndarray:
        """Returns the attention of each target word to the words of a node."""
        return self.weights @ np.array(
            [
                max(0, min(w.end, node.end) - max(w.start, node.start))
                / (w.end - w.start)
                for w in self.sources
            ]
        )

    def covered(self, start: int, end: int) -> list[Word]:
        """Returns the words that overlap a range of the sentence."""
        return [w for w in self.sources if w.start < end and start < w.end]


def project_nodes(root: Node, pair: Pair) -> None:
    """Finds the run of every node in `root`; the root has all words."""
    lo, hi = root.run
    free = np.zeros(len(pair.targets), bool)
    free[lo:hi] = True
    spans = [n for n in root.children if n.fixed or has_words(n, pair)]
    anchors = [n for n in root.children if n not in spans]
    for node in sorted(spans, key=lambda n: placement_priority(n, pair, free)):
        node.run = find_run(node, root, pair, free)
        free[node.run[0] : node.run[1]] = False
        if node.before is None:
            free[: node.run[1]] = False
        if node.after is None:
            free[node.run[0] :] = False
    for node in anchors:
        place = find_place(node, root.run, pair)
        node.run = (place, place)
    for node in root.children:
        if node.run[0] == node.run[1]:
            move_outside(node, spans, root)
        project_nodes(node, pair)
    root.children.sort(key=lambda n: n.run)


def has_words(node: Node, pair: Pair) -> bool:
    """Returns whether a node has text, or continues in another sentence."""
    return bool(
        node.before is None
        or node.after is None
        or pair.covered(node.start, node.end)
    )


def placement_priority(node: Node, pair: Pair, free: np.ndarray) -> tuple:
    """Sort key of the nodes of a tag: the most certain ones first."""
    if node.fixed:
        return (0, 0)
    if node.before is None or node.after is None:
        return (1, 0)
    return (2, -best_run(word_gains(node, pair), free)[0])


def word_gains(node: Node, pair: Pair) -> np.ndarray:
    """Returns the gain of each target word for a node; 0 for punctuation."""
    is_word = np.array([word.is_word for word in pair.targets], bool)
    found = np.where(is_word, pair.shares(node) - 0.5, 0.0)
    if node.verbatim is not None:
        # It replaces its run, and may not replace words of another node.
        found[found < 0] = -np.inf
    return found


def find_run(
    node: Node, root: Node, pair: Pair, free: np.ndarray
) -> tuple[int, int]:
    """Returns the run of a node among the free words."""
    if node.fixed and free[slice(*node.fixed)].all():
        return node.fixed
    gain = word_gains(node, pair)
    if node.before is None or node.after is None:
        return find_open_run(node, root, gain, free)
    held = pair.covered(node.start, node.end)
    if node.verbatim is None and held == pair.covered(root.start, root.end):
        return root.run
    best, first, end = best_run(gain, free)
    if best <= 0 and node.verbatim is not None:
        place = find_place(node, root.run, pair)
        return place, place
    if best <= 0:
        shares = np.where(free & (gain != 0), gain + 0.5, 0)
        first = int(shares.argmax()) if len(shares) else 0
        if not len(shares) or shares[first] < LEAST_SHARE:
            place = find_place(node, root.run, pair)
            return place, place
        end = first + 1
    return include_punctuation(node, pair, free, first, end)


def find_open_run(
    node: Node, root: Node, gain: np.ndarray, free: np.ndarray
) -> tuple[int, int]:
    """Returns the run of a node that continues in another sentence."""
    lo, hi = root.run
    taken = [place for place in range(lo, hi) if not free[place]]
    if node.before is None:
        sums = np.cumsum(gain[lo : min(taken, default=hi)])
        return lo, lo + count_best(sums)
    sums = np.cumsum(gain[max(taken, default=lo - 1) + 1 : hi][::-1])
    return hi - count_best(sums), hi


def count_best(sums: np.ndarray) -> int:
    """Returns the index of the largest sum, the last of equal ones."""
    sums = np.concatenate([[0.0], sums])
    return len(sums) - 1 - int(sums[::-1].argmax())


def best_run(gain: np.ndarray, free: np.ndarray) -> tuple[float, int, int]:
    """Returns the largest sum of a run, and its shortest run."""
    best, total, first = (0.0, 0, 0), 0.0, 0
    for place, one in enumerate(gain):
        if not free[place] or total + one <= 0:
            total, first = 0.0, place + 1
            continue
        if total <= 0:
            first = place
        total += one
        if total > best[0]:
            best = (total, first, place + 1)
    return best


def include_punctuation(
    node: Node, pair: Pair, free: np.ndarray, first: int, end: int
) -> tuple[int, int]:
    """Adds punctuation to a run, as much as the node has at its ends."""
    held = pair.covered(node.start, node.end)
    for word in held:
        if word.is_word or not first or not free[first - 1]:
            break
        first -= not pair.targets[first - 1].is_word
    for word in reversed(held):
        if word.is_word or end == len(free) or not free[end]:
            break
        end += not pair.targets[end].is_word
    return first, end


def find_place(node: Node, run: tuple[int, int], pair: Pair) -> int:
    """Returns the target word before which a node without words belongs."""
    lo, hi = run
    before = [w for w in pair.sources if w.end <= node.start]
    if not before:
        return lo
    if len(before) == len(pair.sources):
        return hi
    follows = node.touches[0] and not node.touches[1]
    column = pair.weights[lo:hi, len(before) - follows]
    place = lo + int(column.argmax()) + follows if len(column) else lo
    return place


def move_outside(node: Node, spans: list[Node], root: Node) -> None:
    """Moves a node without words out of the run of another node."""
    place = min(max(node.run[0], root.run[0]), root.run[1])
    for span in spans:
        if span.run[0] < place < span.run[1]:
            place = span.run[1]
        if span.before is None and span is not node:
            place = max(place, span.run[1])
        if span.after is None and span is not node:
            place = min(place, span.run[0])
    node.run = (place, place)
