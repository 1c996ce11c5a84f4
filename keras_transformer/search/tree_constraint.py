"""Constraint of a search to trees of the sentence's words (Section 6.3).

A parsing model writes a tree as `(S (NP The/DT cat/NN )NP )S`. Under the
constraint each hypothesis is such a tree: it has the words of the sentence in
their order, a tag after each, and constituents that are not empty and end with
a bracket of their own label.

Axes: `B` sentences, `R` hypotheses, `L` capacity in tokens, `Q` leaf tokens,
`V` vocabulary.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.special_ids import PADDING_ID

TAG = -1  # In `leaves`: any tag.
OTHER, OPENING, CLOSING, TAGGING = range(4)  # Kinds of tokens.


@dataclasses.dataclass(frozen=True)
class TreeConstraint:
    """The symbols of trees, and the words of each sentence.

    Attributes:
        closing_of: Dict from the id of each opening bracket to that of the
            closing bracket of the same label.
        tag_ids: Tuple of ints, the ids of tags.
        vocabulary_size: Int, `V`.
        leaves: Int32 tensor `(B, Q)`: the tokens of the words, and `TAG` after
            the last token of each word; padded with 0.
    """

    closing_of: dict[int, int]
    tag_ids: tuple[int, ...]
    vocabulary_size: int
    leaves: Any

    def kinds(self):
        """Returns the kind of each token, an int array `(V,)`."""
        kinds = np.full(self.vocabulary_size, OTHER, "int32")
        kinds[list(self.tag_ids)] = TAGGING
        kinds[list(self.closing_of)] = OPENING
        kinds[list(self.closing_of.values())] = CLOSING
        return kinds

    def find_allowed(self, leaves, limits, ids, index, eos_id):
        """Finds the tokens that may follow in a tree.

        A bracket opens only where enough tokens are left to close it before
        the limit, so every hypothesis can become a tree, if the limit holds
        one. The arguments are those of `apply_constraints`; `leaves` `(R, Q)`
        are those of each hypothesis.
        """
        kinds, partners = self.kinds(), np.zeros(self.vocabulary_size, "int32")
        partners[list(self.closing_of)] = list(self.closing_of.values())
        positions = ops.arange(ops.shape(ids)[1], dtype="int32")
        is_past = positions < index
        written = ops.where(is_past, ops.take(kinds, ids, axis=0), OTHER)
        is_opening = ops.equal(written, OPENING)
        is_closing = ops.equal(written, CLOSING)
        steps = ops.cast(is_opening, "int32") - ops.cast(is_closing, "int32")
        depth = ops.sum(steps, axis=1)
        # The bracket to close is the last one that opened at this depth.
        is_parent = ops.logical_and(
            is_opening, ops.equal(ops.cumsum(steps, axis=1), depth[:, None])
        )
        parent = select(ids, ops.max(ops.where(is_parent, positions, 0), 1))
        closing = ops.take(partners, parent, axis=0)
        is_bracket = ops.logical_or(is_opening, is_closing)
        count = ops.sum(
            ops.cast(ops.logical_and(is_past, ~is_bracket), "int32"), axis=1
        )
        num_leaves = ops.sum(
            ops.cast(ops.not_equal(leaves, PADDING_ID), "int32"), axis=1
        )
        count = ops.minimum(count, num_leaves)  # Unused hypotheses have more.
        ended = ops.pad(leaves, [[0, 0], [1, 1]], constant_values=PADDING_ID)
        previous, following = select(ended, count), select(ended, count + 1)
        is_within = ops.logical_and(count > 0, ops.not_equal(previous, TAG))
        is_left = ops.less(count, num_leaves)
        is_tag = ops.equal(following, TAG)
        last = select(written, ops.maximum(index - 1, 0) + 0 * count)
        needed = num_leaves - count + depth + 1
        spare = limits - index - needed
        may_open = all_of(~is_within, is_left, spare >= 2)
        may_close = all_of(~is_within, depth > 0, ops.not_equal(last, OPENING))
        may_end = all_of(~is_within, ~is_left, ops.equal(depth, 0))
        columns = np.arange(self.vocabulary_size, dtype="int32")
        allowed = False
        for is_allowed, tokens in (
            (may_open, kinds == OPENING),
            (is_tag, kinds == TAGGING),
            (ops.logical_and(is_left, ~is_tag), ops.equal(columns, following[:, None])),
            (may_close, ops.equal(columns, closing[:, None])),
            (may_end, columns == eos_id),
        ):
            new = ops.logical_and(is_allowed[:, None], tokens)
            allowed = ops.logical_or(allowed, new)
        return allowed


def select(x, columns):
    """Returns the element of each row at its column, `(R,)`."""
    return ops.take_along_axis(x, columns[:, None], axis=1)[:, 0]


def all_of(*conditions):
    """Returns where all conditions hold."""
    return functools.reduce(ops.logical_and, conditions)
