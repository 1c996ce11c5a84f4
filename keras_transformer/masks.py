"""Attention masks and weights of tokens (Vaswani et al., 2017, Section 3.2.3).

A mask is a boolean tensor; True means that the position may be used.
"""

import functools
from collections.abc import Iterable
from typing import Any

from keras import ops

from keras_transformer.special_ids import PADDING_ID


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


def token_weights(ids: Any, sample_weight: Any = None) -> Any:
    """Returns the float32 weight of each token, 0 for padding.

    `sample_weight` has the shape of `ids` or its first axes, such as `(B,)`, one
    weight for each sentence.
    """
    weights = ops.cast(padding_mask(ids), "float32")
    if sample_weight is None:
        return weights
    given = ops.cast(sample_weight, "float32")
    missing = len(weights.shape) - len(given.shape)
    if missing < 0:
        raise ValueError(
            "`sample_weight` must be of the shape of `y_true` or of its first "
            f"axes. Received: sample_weight of shape {tuple(given.shape)}, "
            f"y_true of shape {tuple(weights.shape)}"
        )
    # Broadcasting would treat weights of sentences as weights of positions.
    return weights * given[(..., *[None] * missing)]


def causal_mask(length: Any, key_length: Any = None, start_index: Any = 0):
    """Lets a position attend to itself and earlier ones, never to later ones.

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


def combine_masks(
    padding: Iterable, attention_mask: Any = None, causal: Any = None
) -> Any:
    """Returns one mask that broadcasts to `(B, H, T, S)`, or `None`.

    Those of `padding` are `(B, S)` or `(B, T, S)`, or `None`; `attention_mask` is
    `(T, S)`, `(B, T, S)` or `(B, H, T, S)`; and `causal` is `(T, S)`.
    """
    masks = [with_heads(mask) for mask in padding if mask is not None]
    if attention_mask is not None:
        rank = len(attention_mask.shape)
        if rank not in (2, 3, 4):
            raise ValueError(
                "`attention_mask` must be of shape (T, S), (B, T, S) or "
                "(B, H, T, S). "
                f"Received: shape {tuple(attention_mask.shape)}"
            )
        masks.append(attention_mask[:, None] if rank == 3 else attention_mask)
    masks = [ops.cast(mask, "bool") for mask in masks]
    if causal is not None:
        masks.append(causal)
    return functools.reduce(ops.logical_and, masks) if masks else None


def with_heads(mask: Any) -> Any:
    """Returns a mask of keys as one that broadcasts to `(B, H, T, S)`."""
    rank = len(mask.shape)
    if rank not in (2, 3):
        raise ValueError(
            "The mask of keys must be of shape (B, S) or (B, T, S). "
            f"Received: shape {tuple(mask.shape)}"
        )
    return mask[:, None, None] if rank == 2 else mask[:, None]
