"""The Transformer of the TensorFlow search, in few operations.

The time of a step of a small model is the overhead of its operations. So this
module computes with few operations the same as the layers, which are its
specification; it uses their weights and linear maps. Three choices matter:

- Attention products have a single query. So only new entries of the caches are
  transposed, and TensorFlow computes many products in parallel, one on each
  core.
- Products, softmax and transposition use ops that oneDNN does not replace; on
  small tensors oneDNN's overhead exceeds the computation.
- Caches have spare capacity, and keep their entries in the order of writing. A
  mask selects the ancestors of each hypothesis; when beams are reordered, only
  the mask is reordered.

Axes: `N` layers, `B` sentences, `K` beams, `R` capacity in positions,
`S` source tokens, `H` heads, `D` width of the model, `d` features of a head.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.masks import padding_mask
from keras_transformer.search.sampling import sampling_tensors, with_one_beam
from keras_transformer.search.tensorflow.decoder_cache import make_cache
from keras_transformer.search.tensorflow.graph_ensemble import GraphEnsemble
from keras_transformer.search.tensorflow.layers import (
    add_and_norm,
    additive_mask,
    attend,
    embed,
    feed_forward,
    finish_stack,
    normalize_input,
    project_keys_values,
)
from keras_transformer.search.tensorflow.search_loop import run_search_loop


class SentenceState(NamedTuple):
    """State of each sentence during the search."""

    cache: Any  # State of the `GraphAttentionCache` or `GraphRecurrentCache`.
    memory_mask: tf.Tensor  # (B, 1, 1, 1, S), 0 where a token is
    memory_keys: tf.Tensor  # (N, B, 1, H, S, d_k)
    memory_values: tf.Tensor  # (N, B, 1, H, S, d_v)


class StepConstants(NamedTuple):
    """Tensors that do not change between steps."""

    cache: Any  # Constants of the cache.
    memory_mask: tf.Tensor  # (B, 1, 1, 1, S)
    memory_keys: tf.Tensor  # (N, B, 1, H, S, d_k)
    memory_values: tf.Tensor  # (N, B, 1, H, S, d_v)
    positions: tf.Tensor  # (R, D), their encodings


def search_in_graph(
    transformer,
    source_ids,
    max_lengths,
    options,
    prefix_ids=None,
    output_kernel=None,
    max_length=None,
):
    """Like `search_translations`, in a TensorFlow graph, and faster.

    Args:
        transformer: A built `Transformer`, or a list of several with one
            vocabulary: an ensemble, see `GraphEnsemble`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with EOS. Learned positions
            limit it further.
        options: `SearchOptions`. `beam_size` and `num_hypotheses` may be int32
            scalar tensors.
        prefix_ids: Int32 tensor `(B, P)`, padded.
        output_kernel: Float tensor or variable `(D, V)`, the matrix of the
            logits, transposed. `None` means to transpose it here, once a call.
            Of an ensemble, a list of them.
        max_length: Int32 scalar tensor, the length of the returned ids, at
            least the largest limit. `None` means the largest limit.

    Returns:
        `Hypotheses`.
    """
    model = make_graph_model(transformer, source_ids, options.beam_size, output_kernel)
    limits = model.limit(max_lengths)
    hypotheses = run_search_loop(model, options, limits, prefix_ids)
    if max_length is None:
        return hypotheses
    missing = tf.cast(max_length, tf.int32) - tf.shape(hypotheses.ids)[2]
    ids = tf.pad(
        hypotheses.ids,
        [[0, 0], [0, 0], [0, missing]],
        constant_values=options.padding_id,
    )
    return hypotheses._replace(ids=ids)


def sample_in_graph(
    transformer,
    source_ids,
    max_lengths,
    sampling,
    options,
    prefix_ids=None,
    output_kernel=None,
):
    """Samples a translation of each source like `sample`, in a graph.

    Its arguments are those of `search_in_graph`, and `sampling`, a
    `Sampling`. Beam size and number of hypotheses are always 1.

    Returns:
        `Hypotheses`, one for each source.
    """
    model = make_graph_model(transformer, source_ids, 1, output_kernel)
    limits = model.limit(max_lengths)
    tensors = sampling_tensors(sampling, limits)
    return run_search_loop(model, with_one_beam(options), limits, prefix_ids, tensors)


def make_graph_model(transformer, source_ids, num_beams, output_kernel):
    """Makes a `GraphTransformer`, or a `GraphEnsemble` of a list of models.

    The arguments are those of `search_in_graph`.
    """
    if not isinstance(transformer, (list, tuple)):
        return GraphTransformer(transformer, source_ids, num_beams, output_kernel)
    kernels = output_kernel or [None] * len(transformer)
    return GraphEnsemble(
        GraphTransformer(each, source_ids, num_beams, kernel)
        for each, kernel in zip(transformer, kernels, strict=True)
    )


def is_supported(transformer):
    """Returns whether this module computes what the model's methods do."""
    # `search_translations` refuses models that override `call` or `decode`.
    ignored = {"call", "decode", "compute_logits"}
    return set(transformer.custom_parts()) <= ignored


class GraphTransformer:
    """A Transformer as a model of `run_search_loop`.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int32 tensor `(B, S)`, padded with 0 at the end.
        num_beams: Int, or int32 scalar tensor, `K`.
        output_kernel: Float tensor or variable `(D, V)`, the matrix of the
            logits, transposed. `None` means to transpose it here.
    """

    def __init__(self, transformer, source_ids, num_beams, output_kernel):
        if not is_supported(transformer):
            raise ValueError(
                "The TensorFlow search takes a Transformer whose `encode`, "
                "`decode_states`, embedding and stacks are not replaced; "
                "`compute_logits` may be. "
                f"Received: {type(transformer).__name__}"
            )
        if output_kernel is None:
            output_kernel = tf.transpose(
                tf.convert_to_tensor(transformer.embedding_of_logits.embeddings)
            )
        self._transformer = transformer
        self._layers = transformer.decoder.layers
        # Finished sentences leave the batch, so its size is not static.
        self._source_ids = tf.compat.v1.placeholder_with_default(
            source_ids, [None, None]
        )
        self._num_beams = num_beams
        self._output_kernel = output_kernel
        self._cache = make_cache(self._layers, num_beams)

    def limit(self, lengths):
        """Limits lengths to the number of available positions."""
        if self._transformer.architecture.positions == "learned":
            return tf.minimum(lengths, self._transformer.sequence_length)
        return lengths

    def start(self):
        """Runs the encoder and creates the caches: `SentenceState`."""
        batch, length = tf.unstack(tf.shape(self._source_ids))
        mask = additive_mask(padding_mask(self._source_ids))[:, None, None, None]
        memory = self._encode(mask)  # (B * S, D)
        pairs = [
            project_keys_values(layer.memory_attention, memory, length)
            for layer in self._layers
        ]
        keys, values = (tf.stack(x)[:, :, None] for x in zip(*pairs, strict=True))
        return SentenceState(self._cache.start(batch), mask, keys, values)

    def _encode(self, mask):
        """Returns the encoder's outputs, `(B * S, D)`."""
        encoder = self._transformer.encoder
        length = tf.shape(self._source_ids)[1]
        embedding = self._transformer.embedding_of_sources
        x = embed(embedding, self._source_ids) + self._encodings(length)
        x = tf.reshape(x, [-1, x.shape[-1]])
        for layer in encoder.layers:
            y = normalize_input(layer.attention_residual, x)
            pair = [z[:, None] for z in project_keys_values(layer.attention, y, length)]
            y = attend(layer.attention, y, length, *pair, mask)
            x = add_and_norm(layer.attention_residual, x, y)
            y = normalize_input(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        return finish_stack(encoder, x)

    def _encodings(self, count):
        """Returns the encodings of the first `count` positions."""
        width = self._transformer.architecture.hidden_dim
        x = self._transformer.position_encoding(tf.zeros([1, count, width]))
        return tf.cast(x[0], tf.float32)

    def gather_sentences(self, state, rows, capacity):
        """Selects sentences, and enlarges the caches for further steps.

        Args:
            state: `SentenceState`.
            rows: Int32 tensor `(B,)`, indices of sentences in it.
            capacity: Int32 scalar tensor, `R`, at least that of `state`.

        Returns:
            The caches that steps write into, and `StepConstants`.
        """
        buffers, indices = self._cache.gather_sentences(state.cache, rows, capacity)
        return buffers, StepConstants(
            indices,
            tf.gather(state.memory_mask, rows),
            tf.gather(state.memory_keys, rows, axis=1),
            tf.gather(state.memory_values, rows, axis=1),
            self._encodings(self.limit(capacity)),
        )

    def step(self, ids, index, buffers, constants):
        """Decodes one position of each hypothesis.

        Args:
            ids: Int32 tensor `(B * K,)`, the tokens at the position.
            index: Int32 scalar tensor, the position.
            buffers: Result of `gather_sentences` or of the previous step.
            constants: `StepConstants`.

        Returns:
            Logits `(B * K, V)`, and the buffers, with the position.
        """
        embedding = self._transformer.embedding
        x = embed(embedding, ids) + tf.gather(constants.positions, index)
        step = self._cache.step(index, buffers, constants.cache)
        memory_keys = tf.unstack(constants.memory_keys, len(self._layers))
        memory_values = tf.unstack(constants.memory_values, len(self._layers))
        for i, layer in enumerate(self._layers):
            y = normalize_input(layer.self_attention_residual, x)
            y = step.self_attend(i, y)
            x = add_and_norm(layer.self_attention_residual, x, y)
            y = normalize_input(layer.memory_attention_residual, x)
            y = attend(
                layer.memory_attention,
                y,
                self._num_beams,
                memory_keys[i],
                memory_values[i],
                constants.memory_mask,
            )
            x = add_and_norm(layer.memory_attention_residual, x, y)
            y = normalize_input(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        x = finish_stack(self._transformer.decoder, x)
        if self._transformer.overrides("compute_logits"):
            return self._transformer.compute_logits(x), step.buffers
        kernel = tf.convert_to_tensor(self._output_kernel)
        logits = tf.matmul(tf.cast(x, kernel.dtype), kernel)
        bias = self._transformer.embedding_of_logits.bias
        if bias is not None:
            bias = tf.convert_to_tensor(bias)
            logits += tf.cast(bias, logits.dtype)
        return logits, step.buffers

    def reorder_beams(self, buffers, parents, constants):
        """Reorders the state so that each hypothesis continues its parent.

        Args:
            buffers: Result of the step.
            parents: Int32 `(B, K)`, beams of the same sentence.
            constants: `StepConstants`.
        """
        return self._cache.reorder_beams(buffers, parents, constants.cache)

    def store_sentences(self, buffers, constants):
        """Returns the `SentenceState` that `gather_sentences` takes."""
        return SentenceState(
            self._cache.store_sentences(buffers, constants.cache),
            constants.memory_mask,
            constants.memory_keys,
            constants.memory_values,
        )
