"""Decoder caches of the TensorFlow search.

There is one class for each `mixer` of a decoder layer, with the same methods:
`start` before the first step, `gather_sentences` and `store_sentences` around
steps of the same sentences, `step` in each step with `self_attend` for each
layer, and `reorder_beams` when beams are reordered.

Axes: `N` layers, `B` sentences, `K` beams, `R` capacity in positions,
`H` heads, `D` width of the model, `d` features of a head.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.tensorflow.layers import (
    FORBIDDEN,
    additive_mask,
    apply_linear,
    attend,
    project_keys_values,
)


def make_cache(layers, num_beams):
    """Returns the cache that fits the decoder layers."""
    if layers[0].mixer == "ssru":
        return GraphRecurrentCache(layers, num_beams)
    return GraphAttentionCache(layers, num_beams)


class AttentionState(NamedTuple):
    """Self-attention state of each sentence, between rounds of steps."""

    visible: tf.Tensor  # (B, K, R, K), 0 where a beam sees what one wrote
    keys: tf.Tensor  # (N, B, H, R, K, d_k)
    values: tf.Tensor  # (N, B, H, R, K, d_v)


class StepBuffers(NamedTuple):
    """Caches that a step writes into: one row for each position."""

    visible: tf.Tensor  # (B * K * R, K)
    keys: tf.Tensor  # (N * B * H * R, K, d_k)
    values: tf.Tensor  # (N * B * H * R, K, d_v)


class BufferIndices(NamedTuple):
    """Indices that do not change between steps."""

    batch_size: tf.Tensor  # () int32, B
    visible: tf.Tensor  # (B * K,) int32, where position 0 is written
    keys: tf.Tensor  # (N, B * H) int32, the same
    self_mask: tf.Tensor  # (B * K, K), 0 where a beam is itself


class GraphAttentionCache:
    """Keys and values, in the order of writing.

    A mask selects the ancestors of each hypothesis; when beams are reordered,
    only the mask is reordered.

    Args:
        layers: The decoder layers.
        num_beams: Int, or int32 scalar tensor, `K`.
    """

    def __init__(self, layers, num_beams):
        self.layers = layers
        self.num_beams = num_beams

    def start(self, batch):
        """Returns the `AttentionState` of sentences before any step."""
        attention, no_room = self.layers[0].self_attention, 0 * batch
        beams = self.num_beams
        shape = [len(self.layers), batch, attention.num_heads, no_room, beams]
        values = attention.value_dim or attention.key_dim
        return AttentionState(
            tf.zeros([batch, beams, no_room, beams]),
            tf.zeros([*shape, attention.key_dim]),
            tf.zeros([*shape, values]),
        )

    def gather_sentences(self, state, rows, capacity):
        """Returns `StepBuffers` and `BufferIndices` of some sentences."""
        more = capacity - tf.shape(state.visible)[2]

        def resize(x, axis, fill=0.0):
            ends = [[0, 0]] * x.shape.rank
            ends[axis + 2] = [0, more]
            return tf.pad(tf.gather(x, rows, axis=axis), ends, "CONSTANT", fill)

        visible = resize(state.visible, 0, FORBIDDEN)
        keys, values = resize(state.keys, 1), resize(state.values, 1)
        batch, beams = tf.size(rows), self.num_beams
        first = tf.range(tf.size(keys[:, :, :, 0, 0, 0])) * capacity
        return StepBuffers(
            tf.reshape(visible, [-1, beams]),
            tf.reshape(keys, [-1, beams, keys.shape[-1]]),
            tf.reshape(values, [-1, beams, values.shape[-1]]),
        ), BufferIndices(
            batch,
            tf.range(batch * beams) * capacity,
            tf.reshape(first, [len(self.layers), -1]),
            tf.tile(additive_mask(tf.eye(beams) > 0), [batch, 1]),
        )

    def step(self, index, buffers, indices):
        """Begins the step of position `index`."""
        return AttentionStep(self, index, buffers, indices)

    def reorder_beams(self, buffers, parents, indices):
        """Gives each hypothesis the mask of its parent, `(B, K)`."""
        beams = self.num_beams
        visible = tf.reshape(buffers.visible, [indices.batch_size, beams, -1])
        visible = tf.gather(visible, parents, batch_dims=1)
        return buffers._replace(visible=tf.reshape(visible, [-1, beams]))

    def store_sentences(self, buffers, indices):
        """Returns the `AttentionState` that `gather_sentences` takes."""
        beams, heads = self.num_beams, self.layers[0].self_attention.num_heads
        shape = [len(self.layers), indices.batch_size, heads, -1, beams]
        keys, values = (
            tf.reshape(cache, [*shape, cache.shape[-1]])
            for cache in (buffers.keys, buffers.values)
        )
        visible = tf.reshape(buffers.visible, [indices.batch_size, beams, -1, beams])
        return AttentionState(visible, keys, values)


class AttentionStep:
    """One position of all hypotheses.

    Attributes:
        buffers: `StepBuffers`, with this position in the layers so far.
    """

    def __init__(self, cache, index, buffers, indices):
        self._cache = cache
        self._batch = indices.batch_size
        visible = write(buffers.visible, indices.visible + index, indices.self_mask)
        self._mask = tf.reshape(
            visible, [indices.batch_size, cache.num_beams, 1, 1, -1]
        )
        self._rows = tf.unstack(indices.keys + index, len(cache.layers))
        self.buffers = buffers._replace(visible=visible)

    def self_attend(self, i, x):
        """Returns the output of layer `i`'s self-attention for `(B * K, D)`."""
        layer, beams = (self._cache.layers[i].self_attention, self._cache.num_beams)
        keys, values = (
            write(cache, self._rows[i], tf.reshape(z, [-1, beams, z.shape[-1]]))
            for cache, z in zip(
                self.buffers[1:], project_keys_values(layer, x, beams), strict=True
            )
        )
        self.buffers = self.buffers._replace(keys=keys, values=values)
        return attend(
            layer,
            x,
            beams,
            self._of_layer(i, keys),
            self._of_layer(i, values),
            self._mask,
        )

    def _of_layer(self, i, cache):
        """Returns the cache of a layer, `(B, 1, H, R * K, d)`."""
        number = len(self._cache.layers)
        heads = self._cache.layers[i].self_attention.num_heads
        shape = [number, self._batch, 1, heads, -1, cache.shape[-1]]
        return tf.unstack(tf.reshape(cache, shape), number)[i]


class GraphRecurrentCache:
    """The state of each `SSRU`: one vector for each beam.

    Both its state and its buffers are a tensor `(B, K, N * D)`.

    Its arguments are those of `GraphAttentionCache`.
    """

    def __init__(self, layers, num_beams):
        self.layers = layers
        self.num_beams = num_beams

    def start(self, batch):
        width = sum(layer.recurrence.forget.units for layer in self.layers)
        return tf.zeros([batch, self.num_beams, width])

    def gather_sentences(self, state, rows, capacity):
        return tf.gather(state, rows), ()

    def step(self, index, buffers, indices):
        return RecurrentStep(self.layers, buffers)

    def reorder_beams(self, buffers, parents, indices):
        return tf.gather(buffers, parents, batch_dims=1)

    def store_sentences(self, buffers, indices):
        return buffers


class RecurrentStep:
    """One position of all hypotheses."""

    def __init__(self, layers, buffers):
        self._layers = layers
        self._shape = tf.shape(buffers)
        rows = tf.reshape(buffers, [-1, buffers.shape[-1]])
        self._states = tf.split(rows, len(layers), axis=1)

    @property
    def buffers(self):
        return tf.reshape(tf.concat(self._states, axis=1), self._shape)

    def self_attend(self, i, x):
        layer = self._layers[i].recurrence
        kept = tf.sigmoid(apply_linear(layer.forget, x))
        new = (1.0 - kept) * apply_linear(layer.update, x)
        self._states[i] = kept * self._states[i] + new
        return tf.nn.relu(self._states[i])


def write(cache, rows, new):
    """Writes rows into a cache in place.

    `tf.tensor_scatter_nd_update` would copy the whole cache in each step. This
    is safe: only the search uses its caches, and a step has read them before
    the next one writes.
    """
    return tf.raw_ops.InplaceUpdate(x=cache, i=rows, v=new)
