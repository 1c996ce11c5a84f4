"""Beam search over a Transformer, from ids to ids (Section 6.1)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.argument_checks import check_length, ids_tensor, static_int
from keras_transformer.layers.cache import DecoderCache
from keras_transformer.masks import padding_mask
from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.compilation import compiled_call
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.search_result import Hypotheses


def search_translations(
    transformer: Any,
    source_ids: Any,
    max_lengths: Any,
    options: SearchOptions,
    prefix_ids: Any = None,
    max_length: Any = None,
) -> Hypotheses:
    """Finds the best translations of each sentence by beam search.

    The encoder runs once, the decoder once for each position. TensorFlow and
    JAX compile the search at the first call with the same `options`, but for
    numbers such as the length penalty; torch does not. On TensorFlow it is
    `search_in_graph`, unless a subclass replaces what that reads.

    Args:
        transformer: A `Transformer`.
        source_ids: Int tensor `(B, S)`, padded with 0 at the end.
        max_lengths: Int32 tensor `(B,)`, at least 1: the limit of each
            translation, in tokens with EOS. Learned positions limit it further.
        options: `SearchOptions`.
        prefix_ids: Int32 tensor `(B, P)`, padded: the first tokens of each.
        max_length: Int, at least the largest limit: the length of the returned
            ids. `None` means the largest limit. JAX compiles for each length.

    Returns:
        `Hypotheses`.

    Raises:
        ValueError: If `source_ids` are not of rank 2, not in the vocabulary or
            too long for learned positions, if the vocabulary lacks BOS or EOS,
            if a subclass overrides what the search does not call, or if logits
            are not finite.
    """
    source_ids = ids_tensor("source_ids", source_ids, transformer.num_source_ids)
    if transformer.architecture.positions == "learned":
        check_length("source_ids", source_ids, transformer.sequence_length)
    check_model(transformer, options)
    tensors = {"source_ids": source_ids, "max_lengths": max_lengths}
    if prefix_ids is not None:
        tensors["prefix_ids"] = prefix_ids
    search: Callable = search_by_layers
    if keras.backend.backend() == "tensorflow":
        from keras_transformer.search.tensorflow import graph_transformer

        if graph_transformer.is_supported(transformer):
            search = graph_transformer.search_in_graph
    return check_logits_were_finite(
        compiled_call(transformer, search, options, tensors, max_length)
    )


def search_by_layers(
    transformer, source_ids, max_lengths, options, prefix_ids=None, max_length=None
):
    """Like `search_translations`, by `beam_search` over the model's layers.

    It runs on every backend, and is not compiled. On TensorFlow, `max_length`
    may be an int32 scalar tensor.
    """
    if transformer.architecture.positions == "learned":
        max_lengths = ops.minimum(max_lengths, transformer.sequence_length)
    if max_length is None:
        max_length = int(ops.max(max_lengths, initial=1))
    memory = transformer.encode(source_ids, training=False)
    self_caches, memory_caches = transformer.decoder.make_cache(
        max_length, memory, options.beam_size
    )

    def next_step(ids, index, self_caches, memory_caches, memory_mask):
        states, (self_caches, _) = transformer.decode_states(
            ids[:, None],
            memory_mask=memory_mask,
            cache=DecoderCache(self_caches, memory_caches),
            training=False,
        )
        return transformer.compute_logits(states[:, 0]), self_caches

    return beam_search(
        next_step,
        self_caches,
        options,
        max_lengths,
        prefix_ids,
        constants=(memory_caches, padding_mask(source_ids)),
        max_length=max_length,
    )


def check_model(model, options):
    """Raises `ValueError` if the search would not follow the model."""
    if overridden := model.overrides("call", "decode"):
        raise ValueError(
            "The search calls `decode_states` and `compute_logits` instead. "
            f"Received: {type(model).__name__}, which overrides "
            f"{' and '.join(overridden)}"
        )
    size = model.vocabulary_size
    if max(options.bos_id, options.eos_id) >= size:
        raise ValueError(
            "`bos_id` and `eos_id` must be below the size of the vocabulary, "
            f"{size}. Received: bos_id={options.bos_id}, "
            f"eos_id={options.eos_id}"
        )


def best_ids(hypotheses):
    """Returns the ids of the best, `(B, L)`, no column of which is padding alone.

    In a compiled function of JAX, which knows no lengths, `L` is the limit.
    """
    ids, lengths = check_logits_were_finite(hypotheses).ids[:, 0], hypotheses.lengths
    longest = ops.max(lengths[:, 0], initial=0)
    known = static_int(longest)
    if known is None and keras.backend.backend() == "jax":
        return ids
    return ids[:, : longest if known is None else known]


def check_logits_were_finite(hypotheses):
    """Raises `ValueError` if a sentence has no hypothesis; not in a graph."""
    if static_int(ops.min(hypotheses.lengths[:, 0], initial=1)) == 0:
        raise ValueError(
            "The logits of the model must be finite. Received: NaN or infinity"
        )
    return hypotheses
