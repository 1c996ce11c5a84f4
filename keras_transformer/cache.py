"""The cache of keys and values with which a search decodes step by step.

Keys and values have the shape `(B, H, L, d)`. A cache of a fixed length is
written at an index; one that grows gets each step behind its last position.
"""

from keras import ops


def is_end(cache_update_index):
    """Tells whether the index is the one that lets a cache grow."""
    return isinstance(cache_update_index, int) and cache_update_index == -1


def update(cache, new, cache_update_index):
    """Returns `cache` `(B, H, L, d)` with `new` `(B, H, T, d)` in it.

    Args:
        cache: Float tensor.
        new: Float tensor.
        cache_update_index: Int or int scalar tensor, the position of the first
            of `new`; or the int -1, behind the last.

    Raises:
        ValueError: If the index is an int, and `new` has no place there.
    """
    if is_end(cache_update_index):
        return ops.concatenate([cache, new], axis=2)
    check_place(cache_update_index, new.shape[2], cache.shape[2])
    return write(cache, new, cache_update_index)


def check_place(cache_update_index, length, cache_length):
    """Raises `ValueError` if it is known that positions lie outside."""
    if not isinstance(cache_update_index, int) or cache_length is None:
        return
    end = cache_update_index + (1 if length is None else length)
    if cache_update_index < 0 or end > cache_length:
        raise ValueError(
            "`cache_update_index` must leave room for the positions in a cache "
            f"of {cache_length} (`max_length` of `make_cache`), or be -1. "
            f"Received: cache_update_index={cache_update_index} "
            f"for {length} positions"
        )


def write(cache, new, index):
    """Writes `new` `(B, H, T, d)` into `cache` `(B, H, L, d)` at `index`.

    Selects instead of slicing: it compiles on every backend and, unlike the
    op behind `ops.slice_update`, is one that every TensorFlow server has.
    """
    offset = ops.subtract(ops.arange(ops.shape(cache)[2]), index)  # (L,)
    length = ops.shape(new)[2]
    spread = ops.take(new, ops.clip(offset, 0, length - 1), axis=2)
    inside = ops.logical_and(offset >= 0, offset < length)
    return ops.where(inside[None, None, :, None], spread, cache)


def check_cache(cache, cache_update_index):
    """Raises `ValueError` if only one of the two is given."""
    if (cache is None) != (cache_update_index is None):
        only = "cache" if cache_update_index is None else "cache_update_index"
        raise ValueError(
            "`cache` and `cache_update_index` come together. "
            f"Received: only `{only}`"
        )
