"""Ids to ids: beam search over a Transformer (Section 6.1)."""

import tensorflow as tf

from keras_transformer.cache import DecoderCache
from keras_transformer.masks import PADDING_ID
from keras_transformer.masks import padding_mask
from keras_transformer.search.graph_search import BEGIN_ID
from keras_transformer.search.graph_search import beam_search


def search_translations(
    transformer,
    source_ids,
    max_lengths,
    beam_size=4,
    length_penalty=0.6,
    forbidden_ids=(PADDING_ID, BEGIN_ID),
    num_hypotheses=1,
    prefix_ids=None,
    pad_to=None,
    output_kernel=None,
    search=beam_search,
):
    """Finds the best translations of each sentence by beam search.

    The encoder runs once, and the decoder for one position a step.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with the end symbol. Learned positions
            limit it further.
        beam_size: Positive int or int32 scalar tensor, `K`, beams a sentence.
        length_penalty: Float, or float32 tensor, a scalar or `(B,)`: `α`.
        forbidden_ids: Ids that are never chosen.
        num_hypotheses: Int or int32 scalar tensor, hypotheses a sentence;
            `None` means `beam_size`.
        prefix_ids: Int32 tensor `(B, P)`, padded with 0: the tokens with which
            a translation begins, fewer than its limit.
        pad_to: Int or int32 scalar tensor, not below any limit, for XLA: see
            `beam_search`.
        output_kernel: Float tensor `(D, V)`, the embedding matrix transposed.
            `None` means to transpose it here, once a call.
        search: Function that searches: `beam_search`, or `trace_beam_search`
            to see how.

    Returns:
        What `search` returns: `Hypotheses`.
    """
    if transformer.architecture.positions == "learned":
        max_lengths = tf.minimum(max_lengths, transformer.sequence_length)
    memory = transformer.encode(source_ids, training=False)
    self_caches, memory_caches = transformer.decoder.make_cache(
        memory, pad_to, beam_size
    )
    if output_kernel is None:
        output_kernel = tf.transpose(
            tf.cast(transformer.embedding.embeddings, transformer.compute_dtype)
        )
    output_kernel = tf.convert_to_tensor(output_kernel)

    def next_step(ids, index, self_caches, memory_caches, memory_mask):
        states, (self_caches, _) = transformer.decode_states(
            ids[:, None],
            memory_mask=memory_mask,
            cache=DecoderCache(self_caches, memory_caches),
            training=False,
        )
        return tf.matmul(states[:, 0], output_kernel), self_caches

    return search(
        next_step,
        self_caches,
        beam_size,
        length_penalty,
        max_lengths,
        num_hypotheses=num_hypotheses,
        forbidden_ids=forbidden_ids,
        prefix_ids=prefix_ids,
        constants=(memory_caches, padding_mask(source_ids)),
        pad_to=pad_to,
    )
