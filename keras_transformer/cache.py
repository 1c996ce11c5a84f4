"""Caches of keys and values, or recurrent states, between decoding steps.

Keys and values are computed once and looked at in every step that follows.
They have the shapes `(B, H, L, d_k)` and `(B, H, L, d_v)`. Each cache is a
named tuple of tensors, so the loop of any backend carries it.
"""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_transformer.argument_checks import known_int


class GrowingCache(NamedTuple):
    """Keys and values of the positions up to now: each step makes it longer.

    XLA and JAX cannot compile its loop.
    """

    keys: Any  # (B, H, L, d_k)
    values: Any  # (B, H, L, d_v)

    @property
    def length(self):
        """The number of positions it holds."""
        return ops.shape(self.keys)[2]

    def append(self, keys, values):
        """Returns a cache with `T` positions more, `(B, H, T, d)`."""
        return GrowingCache(
            ops.concatenate([self.keys, keys], axis=2),
            ops.concatenate([self.values, values], axis=2),
        )


class FixedCache(NamedTuple):
    """Keys and values with room for `L` positions, zeros to begin with."""

    keys: Any  # (B, H, L, d_k)
    values: Any  # (B, H, L, d_v)
    length: Any  # Int scalar tensor: the number of positions it holds.

    def append(self, keys, values):
        """Returns a cache that holds `T` positions more, `(B, H, T, d)`.

        Raises:
            ValueError: If it is known that there is no room for them.
        """
        room, new = self.keys.shape[2], keys.shape[2]
        held = known_int(self.length)
        if None not in (room, new, held) and held + new > room:
            raise ValueError(
                f"`cache` has room for {room} positions (`max_length` of "
                f"`make_cache`). Received: {new} positions after {held}"
            )
        return FixedCache(
            _write(self.keys, keys, self.length),
            _write(self.values, values, self.length),
            self.length + ops.shape(keys)[2],
        )


class RecurrentCache(NamedTuple):
    """The state of a `SSRU` after the positions up to now."""

    state: Any  # (B, D) float32
    length: Any  # Int scalar tensor: the number of positions it holds.


class DecoderCache(NamedTuple):
    """The caches of a decoder's layers.

    Those of self-attention have a row for every hypothesis, those of the
    memory one for every sentence; without a memory they are `None`.
    """

    self_caches: tuple  # Of one of the kinds above, one a layer.
    memory_caches: tuple  # Of pairs (keys, values) or None, one a layer.

    @property
    def length(self):
        """The number of target positions it holds."""
        return self.self_caches[0].length


def _write(cache, new, index):
    """Writes `new` `(B, H, T, d)` into `cache` `(B, H, L, d)` at `index`.

    Selects instead of slicing: it compiles on every backend and, unlike the
    op behind `ops.slice_update`, is one that every TensorFlow server has.
    """
    offset = ops.subtract(ops.arange(ops.shape(cache)[2]), index)  # (L,)
    length = ops.shape(new)[2]
    spread = ops.take(new, ops.clip(offset, 0, length - 1), axis=2)
    inside = ops.logical_and(offset >= 0, offset < length)
    return ops.where(inside[None, None, :, None], spread, cache)
