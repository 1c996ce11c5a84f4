"""Caches of keys and values, or recurrent states, between decoding steps.

Keys and values are computed once and used in every later step. They have the
shapes `(B, H, L, d_k)` and `(B, H, L, d_v)`. Each cache is a named tuple of
tensors, which the loops of all backends accept.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.argument_checks import static_int


class FixedCache(NamedTuple):
    """Keys and values with a capacity of `L` positions, initially zeros."""

    keys: Any  # (B, H, L, d_k)
    values: Any  # (B, H, L, d_v)
    length: Any  # Int scalar tensor: the number of positions it holds.

    def append(self, keys, values):
        """Returns a cache with `T` more positions, `(B, H, T, d)`.

        Raises:
            ValueError: If they are known to exceed the capacity.
        """
        capacity, new = self.keys.shape[2], keys.shape[2]
        held = static_int(self.length)
        if None not in (capacity, new, held) and held + new > capacity:
            raise ValueError(
                f"`cache` has a capacity of {capacity} positions (`max_length` "
                f"of `make_cache`). Received: {new} positions after {held}"
            )
        return FixedCache(
            _write(self.keys, keys, self.length),
            _write(self.values, values, self.length),
            self.length + ops.shape(keys)[2],
        )


class RecurrentCache(NamedTuple):
    """The state of an `SSRU` after the positions so far."""

    state: Any  # (B, D) float32
    length: Any  # Int scalar tensor: the number of positions it holds.


class DecoderCache(NamedTuple):
    """The caches of a decoder's layers.

    Caches of self-attention have one entry for each hypothesis, those of the
    memory one for each sentence.
    """

    self_caches: tuple  # One cache of the classes above for each layer.
    memory_caches: tuple  # A pair (keys, values) a layer; empty without memory.

    @property
    def length(self):
        """The number of target positions it holds."""
        return self.self_caches[0].length


def _write(cache, new, index):
    """Writes `new` `(B, H, T, d)` into `cache` `(B, H, L, d)` at `index`.

    It selects instead of slicing: this compiles on every backend and, unlike
    `ops.slice_update`, needs no op that a TensorFlow server lacks.
    """
    offset = ops.subtract(ops.arange(ops.shape(cache)[2]), index)  # (L,)
    length = ops.shape(new)[2]
    spread = ops.take(new, ops.clip(offset, 0, length - 1), axis=2)
    inside = ops.logical_and(offset >= 0, offset < length)
    return ops.where(inside[None, None, :, None], spread, cache)
