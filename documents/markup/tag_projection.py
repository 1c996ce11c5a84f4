"""Finds the words of a translation that each tag belongs to.

A tag's words are the run of target words with the most attention to its source
words. Each word counts its share of attention minus `NEUTRAL_SHARE`. Runs of
nested tags are nested, and runs of adjacent tags are disjoint. A word here may
be a part of one, see `tag_aware_alignment`.
"""

import dataclasses

import numpy as np

from documents.markup.markup_tokens import Span

# Just below a half, since a gain of 0 is that of punctuation.
NEUTRAL_SHARE = 0.5 - 1e-6
# The share of attention with which a single word may be a tag's run.
MIN_SHARE = 0.1


@dataclasses.dataclass(eq=False)
class Node:
    """A tag with its content, or a leaf that is put back unchanged."""

    start: int  # Where it begins in the sentence, in characters.
    end: int  # Where it ends; a node without text ends where it begins.
    # Index of the tag that opens it, or of the leaf; `None` if an earlier sentence
    # opens it.
    opening: int | None = None
    closing: int | None = None  # Index of the tag that closes it, if any.
    continues: bool = False  # Whether a later sentence closes it.
    is_leaf: bool = False  # Whether it replaces the translation of its content.
    children: list["Node"] = dataclasses.field(default_factory=list)
    # Whether text, and no blank, precedes and follows it.
    touches: tuple[bool, bool] = (False, False)
    first: int = 0  # Index of its first source word.
    last: int = 0  # Index of the first source word after it.
    # Indices of its words in the translation, if they are known.
    fixed: Span | None = None
    # Index of the first target word, and of the first one after it.
    run: Span = (0, 0)

    @property
    def follows(self) -> bool:
        """Whether it has no words, and belongs to the one before it."""
        has_words = self.run[0] < self.run[1]
        return self.touches[0] and not self.touches[1] and not has_words

    @property
    def stands_alone(self) -> bool:
        """Whether it has no words, and blanks around it."""
        is_void = self.closing is None and not self.continues
        is_empty = self.run[0] == self.run[1]
        return is_void and is_empty and (self.is_leaf or not any(self.touches))

    @property
    def is_open(self) -> bool:
        """Whether it is also in another sentence."""
        return self.opening is None or self.continues


class TagProjector:
    """Finds the runs of the nodes of a sentence.

    The weights are `(target words, source words)`. Other characters are punctuation.
    """

    def __init__(
        self,
        weights: np.ndarray,
        is_source_word: list[bool],
        is_target_word: list[bool],
    ):
        self._weights = weights
        sums = np.cumsum(weights, axis=1)
        self._sums = np.pad(sums, ((0, 0), (1, 0))).T  # (S + 1, T)
        self._is_word = np.array(is_target_word, bool)
        self._is_source_word = is_source_word

    def project(self, root: Node) -> None:
        """Finds the run of every node in `root`, whose run is known."""
        nodes = [root]
        while nodes:
            node = nodes.pop()
            if node.run[0] < node.run[1]:
                self._project_children(node)
            else:
                for child in node.children:
                    child.run = node.run
            nodes += [child for child in node.children if child.children]

    def _project_children(self, root: Node) -> None:
        spans, anchors = [], []
        for node in root.children:
            has_run = node.first < node.last or node.is_open or node.fixed
            (spans if has_run else anchors).append(node)
        if spans:
            self._find_runs(spans, root)
        known = {}
        for node in anchors:
            key = node.first, node.follows
            if key not in known:
                place = self._find_place(node, root.run)
                known[key] = move_outside(place, node, spans, root.run)
            node.run = (known[key],) * 2
        for node in spans:
            if node.run[0] == node.run[1]:
                place = move_outside(node.run[0], node, spans, root.run)
                node.run = (place, place)
        root.children.sort(key=lambda node: node.run)

    def _find_runs(self, spans: list[Node], root: Node) -> None:
        """Finds the runs of the children of a node: the most certain first."""
        lo, hi = root.run
        gains = self._gains(spans, lo, hi)
        free = np.ones(hi - lo, bool)
        best, starts, ends = best_runs(gains)
        order = np.argsort(-best, kind="stable").tolist()
        fixed = [n for n in order if spans[n].fixed]
        is_open = [n for n in order if spans[n].is_open]
        placed = set(fixed + is_open)
        rest = [n for n in order if n not in placed]
        for number in fixed + is_open + rest:
            node, gain = spans[number], gains[number]
            found = best[number], starts[number], ends[number]
            run = None
            if node.fixed:
                run = node.fixed[0] - lo, node.fixed[1] - lo
                if run[0] < 0 or run[1] > hi - lo or not all(free[slice(*run)]):
                    # Its word is dropped there, and it replaces no other one.
                    run = (self._find_place(node, root.run) - lo,) * 2
            if run is None and node.is_open:
                run = self._find_open_run(node, gain, free, lo)
            if run is None:
                run = self._find_run(node, root, gain, free, found)
            free[run[0] : run[1]] = False
            if node.opening is None:
                free[: run[1]] = False
            if node.continues:
                free[run[0] :] = False
            node.run = lo + int(run[0]), lo + int(run[1])

    def _gains(self, nodes: list[Node], lo: int, hi: int) -> np.ndarray:
        """Returns the gain of each target word for each node.

        Punctuation has none, except for a node without words.
        """
        firsts = [node.first for node in nodes]
        lasts = [node.last for node in nodes]
        shares = (self._sums[lasts] - self._sums[firsts])[:, lo:hi]
        has_word = [self._has_word(node) or node.first == node.last for node in nodes]
        counts = self._is_word[lo:hi] == np.array(has_word)[:, None]
        gains = np.where(counts, shares - NEUTRAL_SHARE, 0.0)
        # A leaf replaces its run, and may not replace words of another node.
        is_leaf = np.array([node.is_leaf for node in nodes])[:, None]
        gains[is_leaf & (gains < 0)] = -1.0 - (hi - lo)  # No run makes up for it.
        return gains

    def _has_word(self, node: Node) -> bool:
        return any(self._is_source_word[node.first : node.last])

    def _find_run(
        self, node: Node, root: Node, gain: np.ndarray, free: np.ndarray, found: tuple
    ) -> Span:
        """Returns the run of a node among the free words."""
        lo, hi = root.run
        same = node.first == root.first and node.last == root.last
        if same and not node.is_leaf and free.all():
            return 0, hi - lo
        best, first, end = found
        if best > 0 and not free[first:end].all():
            masked = np.where(free, gain, -1.0 - len(gain))
            best, first, end = (one[0] for one in best_runs(masked[None]))
        if best <= 0:
            shares = np.where(free & (gain != 0), gain + NEUTRAL_SHARE, 0)
            first = int(shares.argmax())
            if node.is_leaf or shares[first] < MIN_SHARE:
                place = self._find_place(node, root.run) - lo
                return place, place
            end = first + 1
        return self._include_punctuation(node, free, first, end, lo)

    def _find_open_run(
        self, node: Node, gain: np.ndarray, free: np.ndarray, lo: int
    ) -> Span:
        """Returns the run of a node that continues in another sentence."""
        has_word = self._has_word(node)
        if not has_word:
            # Its run ends before the next word.
            gain = np.where(gain == 0, -1.0, gain)
        size, is_word = len(free), self._is_word[lo : lo + len(free)]
        step = 1 if node.opening is None else -1  # From the end if it continues.
        taken = np.flatnonzero(~free[::step])
        sums = np.cumsum(gain[::step][: taken[0] if len(taken) else size])
        count = len(sums) - int(np.append(sums[::-1], 0.0).argmax())  # The longest.
        while has_word and count and not is_word[::step][count - 1]:
            count -= 1
        first, end = (0, count) if step > 0 else (size - count, size)
        return self._include_punctuation(node, free, first, end, lo)

    def _include_punctuation(
        self, node: Node, free: np.ndarray, first: int, end: int, lo: int
    ) -> Span:
        """Adds punctuation to a run, as much as the node has at its ends."""
        held = self._is_source_word[node.first : node.last]
        if not any(held):
            return first, end
        for is_word in held:
            if is_word or not first or not free[first - 1]:
                break
            first -= not self._is_word[lo + first - 1]
        for is_word in reversed(held):
            if is_word or end == len(free) or not free[end]:
                break
            end += not self._is_word[lo + end]
        return first, end

    def _find_place(self, node: Node, run: Span) -> int:
        """Returns the target word before which a node without words belongs."""
        lo, hi = run
        if not node.first:
            return lo
        if node.last == len(self._is_source_word):
            return hi
        # A symbol goes on from the words before it.
        first = node.follows or (node.is_leaf and not self._has_word(node))
        for follows in (first, not first):
            column = self._weights[lo:hi, node.first - follows]
            if column.any():
                return lo + int(column.argmax()) + follows
        # Nothing is known: at the same share of the words.
        share = node.first / len(self._is_source_word)
        return min(max(lo, round(share * len(self._is_word))), hi)


def best_runs(gains: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the largest sum of a run in each row, and where its shortest is."""
    rows, size = gains.shape
    sums = np.pad(np.cumsum(gains, axis=1), ((0, 0), (1, 0)))
    lowest = np.minimum.accumulate(sums[:, :-1], axis=1)
    begins = np.where(sums[:, :-1] <= lowest, np.arange(size), 0)
    begins = np.maximum.accumulate(begins, axis=1)
    totals = sums[:, 1:] - lowest
    last = totals.argmax(axis=1)
    row = np.arange(rows)
    return totals[row, last], begins[row, last], last + 1


def move_outside(place: int, node: Node, spans: list[Node], run: Span) -> int:
    """Returns where a node without words is in no run of another node."""
    place = min(max(place, run[0]), run[1])
    for span in spans:
        if span.run[0] < place < span.run[1]:
            place = span.run[1]
        if span.opening is None and span is not node:
            place = max(place, span.run[1])
        if span.continues and span is not node:
            place = min(place, span.run[0])
    return place
