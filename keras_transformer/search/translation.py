"""Ids to ids: beam search over a Transformer (Section 6.1)."""

import functools

import tensorflow as tf

from keras_transformer.masks import padding_mask
from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.graph_search import graph_beam_search
from keras_transformer.search.options import SearchOptions

BEST_ONE = SearchOptions(num_hypotheses=1)


def search_translations(
    transformer,
    source_ids,
    max_lengths,
    options=BEST_ONE,
    prefix_ids=None,
    max_length=None,
    output_kernel=None,
    search=graph_beam_search,
):
    """Finds the best translations of each sentence by beam search.

    The encoder runs once, and the decoder for one position a step.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with the end symbol. Learned positions
            limit it further.
        options: `SearchOptions`.
        prefix_ids: Int32 tensor `(B, P)`, padded with 0: the tokens with which
            a translation begins, fewer than its limit.
        max_length: Int or int32 scalar tensor, not below any limit. With it
            `beam_search` searches with caches of that length, as XLA needs it;
            without it `search` does, with caches that grow.
        output_kernel: Float tensor `(D, V)`, the embedding matrix transposed.
            `None` means to transpose it here, once a call.
        search: Function that searches: `graph_beam_search`, or
            `trace_beam_search` to see how.

    Returns:
        What `search` returns: `Hypotheses`.
    """
    if transformer.architecture.positions == "learned":
        max_lengths = tf.minimum(max_lengths, transformer.sequence_length)
    memory = transformer.encode(source_ids, training=False)
    # A cache that grows has a length that is unknown when traced.
    room = 0 * tf.shape(memory)[1] if max_length is None else max_length
    self_caches, memory_caches = transformer.decoder.make_cache(
        memory, room, options.beam_size
    )
    if output_kernel is None:
        output_kernel = tf.transpose(
            tf.cast(transformer.embedding.embeddings, transformer.compute_dtype)
        )
    output_kernel = tf.convert_to_tensor(output_kernel)

    def next_step(ids, index, self_caches, memory_caches, memory_mask):
        states, (self_caches, _) = transformer.decode_states(
            ids[:, None],
            memory,
            memory_mask,
            cache=(self_caches, memory_caches),
            cache_update_index=-1 if max_length is None else index,
            training=False,
        )
        return tf.matmul(states[:, 0], output_kernel), self_caches

    if max_length is not None:
        search = functools.partial(beam_search, max_length=max_length)
    return search(
        next_step,
        self_caches,
        options,
        max_lengths,
        prefix_ids=prefix_ids,
        constants=(memory_caches, padding_mask(source_ids)),
    )
