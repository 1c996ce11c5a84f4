"""Masks of attention (Vaswani et al., 2017, Section 3.2.3).

A mask is a boolean tensor in which True marks what may be used.
"""

from typing import Any

from keras import ops

PADDING_ID = 0


def padding_mask(ids: Any) -> Any:
    """Marks the real tokens of padded sequences.

    Args:
        ids: Int tensor of any shape, such as `(B, T)`. Id 0 is padding.

    Returns:
        Bool tensor of the shape of `ids`, False where a position is padding.

    Example:
        >>> padding_mask(np.array([[7, 5, 0]]))
        [[True, True, False]]
    """
    return ops.not_equal(ids, PADDING_ID)


def causal_mask(length: Any, key_length: Any = None, start_index: Any = 0):
    """Lets a position see itself and earlier ones, never later ones.

    Args:
        length: Int or int scalar tensor `T`, the number of queries.
        key_length: Int or int scalar tensor `S`, the number of keys. `None`
            means `length`.
        start_index: Int or int scalar tensor, the position of the first query
            among the keys; above 0 when earlier positions come from a cache.

    Returns:
        Bool tensor of shape `(T, S)`: True at `[i, j]` where
        `j <= start_index + i`.

    Example:
        >>> causal_mask(3)
        [[True, False, False], [True, True, False], [True, True, True]]
    """
    key_length = length if key_length is None else key_length
    queries = ops.add(ops.arange(length)[:, None], start_index)
    return ops.less_equal(ops.arange(key_length)[None, :], queries)
