"""Beam search over a Transformer, from ids to ids (Section 6.1)."""

from keras import ops

from keras_transformer.cache import DecoderCache
from keras_transformer.masks import padding_mask
from keras_transformer.search.beam_search import beam_search


def search_translations(
    transformer,
    source_ids,
    max_lengths,
    options,
    prefix_ids=None,
    max_length=None,
    output_kernel=None,
):
    """Finds the best translations of each sentence by beam search.

    The encoder runs once, the decoder once for each position.

    Args:
        transformer: A built `Transformer`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with EOS. Learned positions limit it further.
        options: `SearchOptions`.
        prefix_ids: Int32 tensor `(B, P)`, padded: the first tokens of each.
        max_length: Int, or int32 scalar tensor of TensorFlow, at least the
            largest limit: the capacity of the caches. `None` means the largest
            limit.
        output_kernel: Float tensor `(D, V)`, the embedding matrix transposed.
            `None`: this call transposes it.

    Returns:
        `Hypotheses`.
    """
    if transformer.architecture.positions == "learned":
        max_lengths = ops.minimum(max_lengths, transformer.sequence_length)
    if max_length is None:
        max_length = int(ops.max(max_lengths, initial=1))
    memory = transformer.encode(source_ids, training=False)
    self_caches, memory_caches = transformer.decoder.make_cache(
        memory, max_length, options.beam_size
    )
    if output_kernel is None:
        table = ops.convert_to_tensor(transformer.embedding.embeddings)
        output_kernel = ops.transpose(
            ops.cast(table, transformer.compute_dtype)
        )
    output_kernel = ops.convert_to_tensor(output_kernel)

    def next_step(ids, index, self_caches, memory_caches, memory_mask):
        states, (self_caches, _) = transformer.decode_states(
            ids[:, None],
            memory_mask=memory_mask,
            cache=DecoderCache(self_caches, memory_caches),
            training=False,
        )
        logits = ops.matmul(states[:, 0], output_kernel)
        if transformer.embedding.bias is not None:
            logits = logits + transformer.embedding.bias
        return logits, self_caches

    return beam_search(
        next_step,
        self_caches,
        options,
        max_lengths,
        prefix_ids,
        constants=(memory_caches, padding_mask(source_ids)),
        max_length=max_length,
    )
