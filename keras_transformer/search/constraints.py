"""Constraints of a search: no repeated n-grams, a minimum length.

The paper has no constraints. Each one forbids tokens: it sets their logits to
-inf. Their probability is not redistributed. Forced tokens, those of a prefix
or EOS at the limit, ignore constraints.

Axes: `R` hypotheses, `L` capacity in tokens, `V` vocabulary.
"""

from keras import ops

from keras_transformer.search.options import IMPOSSIBLE


def constraint_tensors(options, limits):
    """Returns the constraints of a batch, a dict without those that are off."""
    given = {
        "no_repeat_ngram": options.no_repeat_ngram,
        "min_length": options.min_length,
    }
    constraints = {
        name: ops.broadcast_to(ops.cast(value, "int32"), ops.shape(limits))
        for name, value in given.items()
        if not isinstance(value, int) or value
    }
    if "min_length" in constraints:  # The end comes at the limit.
        constraints["min_length"] = ops.minimum(constraints["min_length"], limits - 1)
    return constraints


def apply_constraints(logits, constraints, ids, index, options):
    """Forbids tokens by the constraints; EOS stays if no token is left.

    `logits` `(R, V)` are -inf for tokens already forbidden, `constraints` have a
    row for each hypothesis, and `ids` `(R, L)` are the `index` tokens so far.
    """
    is_end = ops.equal(ops.arange(ops.shape(logits)[1]), options.eos_id)
    allowed = logits
    if "min_length" in constraints:
        is_early = ops.less(index, constraints["min_length"])[:, None]
        closed = ops.logical_and(is_early, is_end)
        allowed = ops.where(closed, IMPOSSIBLE, allowed)
    if "no_repeat_ngram" in constraints:
        closed = find_repeats(logits, ids, index, constraints["no_repeat_ngram"])
        allowed = ops.where(closed, IMPOSSIBLE, allowed)
    best = ops.max(allowed, axis=1, keepdims=True)
    is_stuck = ops.equal(best, IMPOSSIBLE)
    return ops.where(ops.logical_and(is_stuck, is_end), logits, allowed)


def find_repeats(logits, ids, index, sizes):
    """Finds the tokens that would repeat an n-gram of the hypothesis.

    These are the tokens after each earlier occurrence of its last `n - 1`, where
    `sizes` `(R,)` are `n`; 0 allows all repetition.
    """
    positions = ops.arange(ops.shape(ids)[1], dtype="int32")
    sizes = sizes[:, None]
    is_earlier = ops.logical_and(positions >= sizes - 1, positions < index)
    is_repeat = ops.logical_and(is_earlier, sizes > 0)  # (R, L)

    def compare(back, is_repeat):
        """Compares the tokens so many positions before."""
        before = ops.take(ids, ops.maximum(positions - back, 0), axis=1)
        last = ops.take(ids, ops.maximum(index - back, 0), axis=1)
        is_same = ops.equal(before, last[:, None])
        is_same = ops.logical_or(is_same, back >= sizes)
        return ops.logical_and(is_repeat, is_same)

    most = ops.max(sizes, initial=1)
    is_repeat = ops.fori_loop(1, most, compare, is_repeat)
    rows = ops.arange(ops.shape(ids)[0], dtype="int32")[:, None]
    cells = ops.stack([ops.broadcast_to(rows, ops.shape(ids)), ids], axis=-1)
    counts = ops.scatter(cells, ops.cast(is_repeat, "float32"), ops.shape(logits))
    return counts > 0
