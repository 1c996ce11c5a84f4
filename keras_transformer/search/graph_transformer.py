"""The Transformer that `search_graph` runs: few operations of TensorFlow.

A step of a small model costs what its operations cost to start. So this says
with few what the layers say readably: they are its specification, and the
weights and linear maps are theirs. Three choices make the difference:

- A product of attention has one query for its left side. So nothing is
  transposed but what is new in the caches, and TensorFlow computes each on one
  core, many at once.
- Products, softmax and transposition are ops that oneDNN leaves alone. On so
  few numbers its own take longer to start than to compute.
- Caches have room for some positions to come, and stay in the order in which
  they were written. A hypothesis sees those that led to it through a mask; when
  beams change places, the mask alone is reordered.

Axes: `N` layers, `B` sentences, `K` beams, `R` positions there is room for,
`S` source tokens, `H` heads, `D` width of the model, `d` features of a head.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.masks import padding_mask
from keras_transformer.search.graph_search import search_graph

FORBIDDEN = -1e9  # Added to the logit of what may not be seen.


class Kept(NamedTuple):
    """What each sentence keeps while it is searched."""

    visible: tf.Tensor  # (B, K, R, K), 0 where a beam sees what one wrote
    keys: tf.Tensor  # (N, B, H, R, K, d_k), of self-attention
    values: tf.Tensor  # (N, B, H, R, K, d_v)
    memory_mask: tf.Tensor  # (B, 1, 1, 1, S), 0 where a token is
    memory_keys: tf.Tensor  # (N, B, 1, H, S, d_k)
    memory_values: tf.Tensor  # (N, B, 1, H, S, d_v)


class Written(NamedTuple):
    """What a step writes into: a row a position, with that of all beams."""

    visible: tf.Tensor  # (B * K * R, K)
    keys: tf.Tensor  # (N * B * H * R, K, d_k)
    values: tf.Tensor  # (N * B * H * R, K, d_v)


class Shared(NamedTuple):
    """What some steps have in common."""

    batch: tf.Tensor  # () int32, B
    memory_mask: tf.Tensor  # (B, 1, 1, 1, S)
    memory_keys: tf.Tensor  # (N, B, 1, H, S, d_k)
    memory_values: tf.Tensor  # (N, B, 1, H, S, d_v)
    positions: tf.Tensor  # (R, D), their encodings
    first_visible: tf.Tensor  # (B * K,) int32, where position 0 is written
    first_keys: tf.Tensor  # (N, B * H) int32, the same
    itself: tf.Tensor  # (B * K, K), 0 where a beam is itself


def graph_search_translations(
    transformer,
    source_ids,
    max_lengths,
    options,
    prefix_ids=None,
    output_kernel=None,
):
    """Does what `search_translations` does, in a TensorFlow graph, and faster.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with the end symbol. Learned positions
            limit it further.
        options: `SearchOptions`. `beam_size` and `num_hypotheses` may be int32
            scalar tensors.
        prefix_ids: Int32 tensor `(B, P)`, padded.
        output_kernel: Float tensor or variable `(D, V)`, the embedding matrix
            transposed. `None` means to transpose it here, once a call.

    Returns:
        `Hypotheses`.
    """
    if output_kernel is None:
        output_kernel = tf.transpose(
            tf.convert_to_tensor(transformer.embedding.embeddings)
        )
    model = GraphTransformer(
        transformer, source_ids, options.beam_size, output_kernel
    )
    limits = model.limit(max_lengths)
    return search_graph(model, options, limits, prefix_ids)


class GraphTransformer:
    """A Transformer as a model of `search_graph`.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int32 tensor `(B, S)`, padded with 0 at the end.
        num_beams: Int, or int32 scalar tensor, `K`.
        output_kernel: Float tensor or variable `(D, V)`, the embedding matrix
            transposed.
    """

    def __init__(self, transformer, source_ids, num_beams, output_kernel):
        self._transformer = transformer
        self._layers = transformer.decoder.layers
        # Sentences will leave the batch, even one of known size.
        self._source_ids = tf.compat.v1.placeholder_with_default(
            source_ids, [None, None]
        )
        self._num_beams = num_beams
        self._output_kernel = output_kernel

    def limit(self, lengths):
        """Returns lengths of which none has more positions than there are."""
        if self._transformer.architecture.positions == "learned":
            return tf.minimum(lengths, self._transformer.sequence_length)
        return lengths

    def start(self):
        """Runs the encoder, and makes the caches: `Kept`."""
        batch, length = tf.unstack(tf.shape(self._source_ids))
        mask = additive(padding_mask(self._source_ids))[:, None, None, None]
        memory = self._encode(mask)  # (B * S, D)
        pairs = [
            project(layer.memory_attention, memory, length)
            for layer in self._layers
        ]
        keys, values = (
            tf.stack(x)[:, :, None] for x in zip(*pairs, strict=True)
        )
        beams, no_room = self._num_beams, 0 * batch

        def empty(like):
            layers, _, _, heads, _, features = like.shape
            return tf.zeros([layers, batch, heads, no_room, beams, features])

        visible = tf.zeros([batch, beams, no_room, beams])
        return Kept(visible, empty(keys), empty(values), mask, keys, values)

    def _encode(self, mask):
        """Returns what the encoder makes of the sources, `(B * S, D)`."""
        encoder = self._transformer.encoder
        length = tf.shape(self._source_ids)[1]
        x = self._embed(self._source_ids) + self._encodings(length)
        x = tf.reshape(x, [-1, x.shape[-1]])
        for layer in encoder.layers:
            y = prepare(layer.attention_residual, x)
            pair = [z[:, None] for z in project(layer.attention, y, length)]
            y = attend(layer.attention, y, length, *pair, mask)
            x = add_and_norm(layer.attention_residual, x, y)
            y = prepare(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        return finish(encoder, x)

    def _embed(self, ids):
        table = tf.convert_to_tensor(self._transformer.embedding.embeddings)
        scale = self._transformer.architecture.hidden_dim**0.5
        return tf.cast(tf.gather(table, ids), tf.float32) * scale

    def _encodings(self, count):
        """Returns those of the first `count` positions."""
        width = self._transformer.architecture.hidden_dim
        x = self._transformer.position_encoding(tf.zeros([1, count, width]))
        return tf.cast(x[0], tf.float32)

    def enter(self, kept, rows, room):
        """Keeps some sentences, and makes room for the steps to come.

        Args:
            kept: `Kept`.
            rows: Int32 tensor `(B,)`, places of sentences in it.
            room: Int32 scalar tensor, `R`, not below that of `kept`.

        Returns:
            `Written` and `Shared`.
        """
        more = room - tf.shape(kept.visible)[2]

        def resize(x, axis, fill=0.0):
            ends = [[0, 0]] * x.shape.rank
            ends[axis + 2] = [0, more]
            return tf.pad(tf.gather(x, rows, axis=axis), ends, "CONSTANT", fill)

        visible = resize(kept.visible, 0, FORBIDDEN)
        keys, values = resize(kept.keys, 1), resize(kept.values, 1)
        batch, beams = tf.size(rows), self._num_beams
        first = tf.range(tf.size(keys[:, :, :, 0, 0, 0])) * room
        shared = Shared(
            batch,
            tf.gather(kept.memory_mask, rows),
            tf.gather(kept.memory_keys, rows, axis=1),
            tf.gather(kept.memory_values, rows, axis=1),
            self._encodings(self.limit(room)),
            tf.range(batch * beams) * room,
            tf.reshape(first, [len(self._layers), -1]),
            tf.tile(additive(tf.eye(beams) > 0), [batch, 1]),
        )
        return Written(
            tf.reshape(visible, [-1, beams]),
            tf.reshape(keys, [-1, beams, keys.shape[-1]]),
            tf.reshape(values, [-1, beams, values.shape[-1]]),
        ), shared

    def step(self, ids, index, written, shared):
        """Decodes one position of each hypothesis.

        Args:
            ids: Int32 tensor `(B * K,)`, the tokens at the position.
            index: Int32 scalar tensor, the position.
            written: `Written`.
            shared: `Shared`.

        Returns:
            Logits `(B * K, V)`, and `Written` with the position.
        """
        beams, number = self._num_beams, len(self._layers)
        x = self._embed(ids) + tf.gather(shared.positions, index)  # (B * K, D)
        visible, keys, values = written
        visible = write(visible, shared.first_visible + index, shared.itself)
        mask = tf.reshape(visible, [shared.batch, beams, 1, 1, -1])
        rows = tf.unstack(shared.first_keys + index, number)
        memory_keys = tf.unstack(shared.memory_keys, number)
        memory_values = tf.unstack(shared.memory_values, number)

        def of_layer(i, cache):
            """Returns all it holds of a layer, `(B, 1, H, R * K, d)`."""
            heads, features = memory_keys[i].shape[2], cache.shape[-1]
            shape = [number, shared.batch, 1, heads, -1, features]
            return tf.unstack(tf.reshape(cache, shape), number)[i]

        for i, layer in enumerate(self._layers):
            y = prepare(layer.self_attention_residual, x)
            new = project(layer.self_attention, y, beams)
            keys, values = (
                write(cache, rows[i], tf.reshape(z, [-1, beams, z.shape[-1]]))
                for cache, z in zip((keys, values), new, strict=True)
            )
            y = attend(
                layer.self_attention,
                y,
                beams,
                of_layer(i, keys),
                of_layer(i, values),
                mask,
            )
            x = add_and_norm(layer.self_attention_residual, x, y)
            y = prepare(layer.memory_attention_residual, x)
            y = attend(
                layer.memory_attention,
                y,
                beams,
                memory_keys[i],
                memory_values[i],
                shared.memory_mask,
            )
            x = add_and_norm(layer.memory_attention_residual, x, y)
            y = prepare(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        x = finish(self._transformer.decoder, x)
        kernel = tf.convert_to_tensor(self._output_kernel)
        logits = tf.matmul(tf.cast(x, kernel.dtype), kernel)
        return logits, Written(visible, keys, values)

    def follow(self, written, parents, shared):
        """Lets each hypothesis see what its parent saw.

        Args:
            written: `Written`.
            parents: Int32 `(B, K)`, beams of the same sentence.
            shared: `Shared`.
        """
        beams = self._num_beams
        visible = tf.reshape(written.visible, [shared.batch, beams, -1])
        visible = tf.gather(visible, parents, batch_dims=1)
        return written._replace(visible=tf.reshape(visible, [-1, beams]))

    def leave(self, written, shared):
        """Returns the `Kept` that `enter` takes."""
        beams, heads = self._num_beams, shared.memory_keys.shape[3]
        shape = [len(self._layers), shared.batch, heads, -1, beams]
        keys, values = (
            tf.reshape(cache, [*shape, cache.shape[-1]])
            for cache in (written.keys, written.values)
        )
        visible = tf.reshape(written.visible, [shared.batch, beams, -1, beams])
        return Kept(
            visible,
            keys,
            values,
            shared.memory_mask,
            shared.memory_keys,
            shared.memory_values,
        )


def additive(mask):
    """Returns 0 where a mask is True, and `FORBIDDEN` where it is not."""
    return tf.where(mask, 0.0, FORBIDDEN)


def project(layer, x, length):
    """Returns the keys, over `sqrt(d_k)`, and values: both `(B, H, T, d)`.

    Args:
        layer: `MultiHeadAttention`.
        x: Float32 tensor `(B * T, D)`.
        length: Int, or int32 scalar tensor, `T`.
    """
    pair = []
    for part in (layer.key_projection, layer.value_projection):
        y = apply(part, x)
        features = y.shape[-1] // layer.num_heads
        y = tf.reshape(y, [-1, length, layer.num_heads, features])
        # As `tf.transpose`, which oneDNN would do.
        y = tf.raw_ops.Einsum(inputs=[y], equation="bthd->bhtd")
        pair.append(y)
    keys, values = pair
    return keys * keys.shape[-1] ** -0.5, values


def attend(layer, x, length, keys, values, mask):
    """Looks at keys and values: equation 1, for each query on its own.

    Args:
        layer: `MultiHeadAttention`.
        x: Float32 tensor `(B * T, D)`.
        length: Int, or int32 scalar tensor, `T`.
        keys: Float32 tensor `(B, 1, H, S, d_k)`.
        values: Float32 tensor `(B, 1, H, S, d_v)`.
        mask: Float32 tensor that broadcasts to `(B, T, H, 1, S)`.

    Returns:
        Float32 tensor `(B * T, D)`.
    """
    heads, features = keys.shape[2], keys.shape[-1]
    queries = apply(layer.query_projection, x)
    queries = tf.reshape(queries, [-1, length, heads, 1, features])
    logits = multiply(queries, keys, adj_y=True) + mask  # (B, T, H, 1, S)
    weights = tf.exp(tf.nn.log_softmax(logits))
    y = multiply(weights, values)  # (B, T, H, 1, d_v)
    y = tf.reshape(y, [-1, heads * values.shape[-1]])
    return apply(layer.output_projection, y)


def feed_forward(layer, x):
    return apply(layer.contract, apply(layer.expand, x))


def apply(layer, x):
    """Returns what a `Linear` makes of rows, in float32."""
    return tf.cast(layer(x), tf.float32)


def multiply(x, y, adj_y=False):
    """Does what `tf.matmul` does, without oneDNN."""
    return tf.raw_ops.BatchMatMulV3(x=x, y=y, adj_y=adj_y, Tout=tf.float32)


def prepare(residual, x):
    """Does what `Residual.prepare` does."""
    return normalize(residual.normalization, x) if residual.norm == "pre" else x


def add_and_norm(residual, x, y):
    """Does what `Residual` does."""
    x = x + y
    return (
        normalize(residual.normalization, x) if residual.norm == "post" else x
    )


def finish(stack, x):
    """Does what a stack does behind its layers."""
    return normalize(stack.normalization, x) if stack.norm == "pre" else x


def normalize(layer, x):
    """Does what a `LayerNormalization` does with rows, in float32."""
    gamma, beta = (
        tf.cast(tf.convert_to_tensor(weight), tf.float32)
        for weight in (layer.gamma, layer.beta)
    )
    x -= tf.reduce_mean(x, axis=1, keepdims=True)
    variance = tf.reduce_mean(tf.square(x), axis=1, keepdims=True)
    return x * tf.math.rsqrt(variance + layer.epsilon) * gamma + beta


def write(cache, rows, new):
    """Writes rows into a cache, in its own memory.

    `tf.tensor_scatter_nd_update` would copy all of it in each step. Nothing
    reads what is overwritten: the caches of a search are its own, and what a
    step reads of them, it has read before the next one writes.
    """
    return tf.raw_ops.InplaceUpdate(x=cache, i=rows, v=new)
