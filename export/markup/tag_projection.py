"""Finds the words of a translation that each tag belongs to.

A tag's words are the run that looks most at what it held: of each word of the
translation, the share of its attention above a half counts for it, and what
lacks to a half against it. Runs of tags stay within those of the tags around
them, and apart from those beside them, so the tags nest as they did.
"""

import dataclasses

import numpy as np

from export.markup.word_alignment import Word

# The share of its attention with which a word may stand alone for a tag.
LEAST_SHARE = 0.1


@dataclasses.dataclass(eq=False)
class Node:
    """A tag with what it holds, or what is put back as it was.

    Attributes:
        start: Int, where it begins in the sentence, in characters.
        end: Int, where it ends; a node without text ends where it begins.
        before: String that opens it; `None` if a sentence before opens it.
        after: String that closes it; `None` if a sentence after closes it.
        verbatim: String that replaces the translation of what it holds.
        children: The nodes in it.
        touches: Whether there is text, and no blank, before and after it.
        fixed: Places of the translation's words, where they are known.
        run: The same, as they were found: first, and first that is not.
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
        """Returns how much each target word looks at what a node holds."""
        return self.weights @ np.array(
            [
                max(0, min(w.end, node.end) - max(w.start, node.start))
                / (w.end - w.start)
                for w in self.sources
            ]
        )

    def covered(self, start: int, end: int) -> list[Word]:
        """Returns the words that a range of the sentence touches."""
        return [w for w in self.sources if w.start < end and start < w.end]


def place_nodes(root: Node, pair: Pair) -> None:
    """Finds the run of every node in `root`, which has that of all words."""
    lo, hi = root.run
    free = np.zeros(len(pair.targets), bool)
    free[lo:hi] = True
    spans = [n for n in root.children if n.fixed or has_words(n, pair)]
    anchors = [n for n in root.children if n not in spans]
    for node in sorted(spans, key=lambda n: urgency(n, pair, free)):
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
            stand_aside(node, spans, root)
        place_nodes(node, pair)
    root.children.sort(key=lambda n: n.run)


def has_words(node: Node, pair: Pair) -> bool:
    """Tells whether a node holds text, or goes on in another sentence."""
    return bool(
        node.before is None
        or node.after is None
        or pair.covered(node.start, node.end)
    )


def urgency(node: Node, pair: Pair, free: np.ndarray) -> tuple:
    """Orders the nodes of a tag: whose place is known best comes first."""
    if node.fixed:
        return (0, 0)
    if node.before is None or node.after is None:
        return (1, 0)
    return (2, -best_run(gains(node, pair), free)[0])


def gains(node: Node, pair: Pair) -> np.ndarray:
    """Returns what each target word counts for a node; signs count nothing."""
    is_word = np.array([word.is_word for word in pair.targets], bool)
    found = np.where(is_word, pair.shares(node) - 0.5, 0.0)
    if node.verbatim is not None:
        # It replaces its run, and may replace no word of another.
        found[found < 0] = -np.inf
    return found


def find_run(
    node: Node, root: Node, pair: Pair, free: np.ndarray
) -> tuple[int, int]:
    """Returns the words of a node, among those that are free."""
    if node.fixed and free[slice(*node.fixed)].all():
        return node.fixed
    gain = gains(node, pair)
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
    return with_signs(node, pair, free, first, end)


def find_open_run(
    node: Node, root: Node, gain: np.ndarray, free: np.ndarray
) -> tuple[int, int]:
    """Returns the words of a node that goes on in another sentence."""
    lo, hi = root.run
    taken = [place for place in range(lo, hi) if not free[place]]
    if node.before is None:
        sums = np.cumsum(gain[lo : min(taken, default=hi)])
        return lo, lo + count_best(sums)
    sums = np.cumsum(gain[max(taken, default=lo - 1) + 1 : hi][::-1])
    return hi - count_best(sums), hi


def count_best(sums: np.ndarray) -> int:
    """Returns how many to take for the largest sum, most of equal ones."""
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


def with_signs(
    node: Node, pair: Pair, free: np.ndarray, first: int, end: int
) -> tuple[int, int]:
    """Adds the signs beside a run, as many as the node has at its ends."""
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


def stand_aside(node: Node, spans: list[Node], root: Node) -> None:
    """Moves a node without words out of the words of another."""
    place = min(max(node.run[0], root.run[0]), root.run[1])
    for span in spans:
        if span.run[0] < place < span.run[1]:
            place = span.run[1]
        if span.before is None and span is not node:
            place = max(place, span.run[1])
        if span.after is None and span is not node:
            place = min(place, span.run[0])
    node.run = (place, place)
