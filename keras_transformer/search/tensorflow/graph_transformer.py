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
    additive_mask,
    attend,
    embed,
    encode_positions,
    project_keys_values,
    run_decoder_step,
    run_encoder,
)
from keras_transformer.search.tensorflow.search_loop import run_search_loop


class Memory(NamedTuple):
    """What the decoder attends to of each sentence."""

    mask: tf.Tensor  # (B, 1, 1, 1, S), 0 where a token is
    keys: tf.Tensor  # (N, B, 1, H, S, d_k)
    values: tf.Tensor  # (N, B, 1, H, S, d_v)


class StepConstants(NamedTuple):
    """Tensors that do not change between steps."""

    cache: Any  # Constants of the `GraphAttentionCache` or `GraphRecurrentCache`.
    memory: Memory
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

    The arguments are those of `search_translations`, but for these:

    Args:
        transformer: A built `Transformer`, or a list of several with one
            vocabulary: an ensemble, see `GraphEnsemble`.
        options: `SearchOptions`. `beam_size` and `num_hypotheses` may be int32
            scalar tensors.
        output_kernel: Float tensor or variable `(D, V)`, the matrix of the
            logits, transposed; for an ensemble, a list of them. `None` means to
            transpose it here, once a call.
        max_length: Int32 scalar tensor, or `None`.
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

    The arguments are those of `search_in_graph`, and a `Sampling`. Beam size and
    number of hypotheses are always 1.
    """
    model = make_graph_model(transformer, source_ids, 1, output_kernel)
    limits = model.limit(max_lengths)
    tensors = sampling_tensors(sampling, limits)
    return run_search_loop(model, with_one_beam(options), limits, prefix_ids, tensors)


def make_graph_model(transformer, source_ids, num_beams, output_kernel):
    """Makes a `GraphTransformer`, or a `GraphEnsemble` of a list of models."""
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
    """A Transformer as a model of `run_search_loop`; see `search_in_graph`."""

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
        self._source_ids = tf.convert_to_tensor(source_ids)
        self._num_beams = num_beams
        self._output_kernel = output_kernel
        self._cache = make_cache(self._layers, num_beams)

    def limit(self, lengths):
        """Limits lengths to the number of available positions."""
        if self._transformer.architecture.positions == "learned":
            return tf.minimum(lengths, self._transformer.sequence_length)
        return lengths

    def start(self):
        """Runs the encoder; returns the state of the cache and the `Memory`."""
        batch, length = tf.unstack(tf.shape(self._source_ids))
        mask = additive_mask(padding_mask(self._source_ids))[:, None, None, None]
        memory = self._encode(mask)  # (B * S, D)
        pairs = [
            project_keys_values(layer.memory_attention, memory, length)
            for layer in self._layers
        ]
        keys, values = (tf.stack(x)[:, :, None] for x in zip(*pairs, strict=True))
        return self._cache.start(batch), Memory(mask, keys, values)

    def _encode(self, mask):
        """Returns the encoder's outputs, `(B * S, D)`."""
        length = tf.shape(self._source_ids)[1]
        x = embed(self._transformer.embedding_of_sources, self._source_ids)
        x += encode_positions(self._transformer, length)

        def self_attend(layer, x):
            pair = [z[:, None] for z in project_keys_values(layer, x, length)]
            return attend(layer, x, length, *pair, mask)

        x = tf.reshape(x, [-1, x.shape[-1]])
        return run_encoder(self._transformer.encoder, x, self_attend)

    def gather_sentences(self, state, rows, capacity):
        """Selects sentences `(B,)`, and enlarges the caches for further steps."""
        state, memory = state
        buffers, indices = self._cache.gather_sentences(state, rows, capacity)
        memory = Memory(
            tf.gather(memory.mask, rows),
            tf.gather(memory.keys, rows, axis=1),
            tf.gather(memory.values, rows, axis=1),
        )
        positions = encode_positions(self._transformer, self.limit(capacity))
        return buffers, StepConstants(indices, memory, positions)

    def step(self, ids, index, buffers, constants):
        """Returns the logits after one position, and the buffers with it."""
        embedding = self._transformer.embedding
        x = embed(embedding, ids) + tf.gather(constants.positions, index)
        step = self._cache.step(index, buffers, constants.cache)
        mask, *pair = constants.memory
        keys, values = (tf.unstack(x, len(self._layers)) for x in pair)

        def attend_to_memory(i, x):
            layer = self._layers[i].memory_attention
            return attend(layer, x, self._num_beams, keys[i], values[i], mask)

        decoder = self._transformer.decoder
        x = run_decoder_step(decoder, x, step.self_attend, attend_to_memory)
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
        """Makes each hypothesis continue its parent, a beam of its sentence."""
        return self._cache.reorder_beams(buffers, parents, constants.cache)

    def store_sentences(self, buffers, constants):
        """Returns the state that `gather_sentences` takes."""
        state = self._cache.store_sentences(buffers, constants.cache)
        return state, constants.memory
