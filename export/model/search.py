"""Searches of an export, from ids to hypotheses; signatures share one graph."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from export.model.beam_trace import BeamTrace, trace_beam_search
from export.model.request_splitting import count_positions, in_chunks
from keras_transformer import Transformer
from keras_transformer.masks import padding_mask
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.sampling import Sampling, with_one_beam
from keras_transformer.search.search_result import Hypotheses
from keras_transformer.search.tensorflow.graph_transformer import (
    make_graph_model,
    sample_in_graph,
    search_in_graph,
)
from keras_transformer.search.tensorflow.search_loop import longest_limit
from keras_transformer.special_ids import BOS_ID, PADDING_ID

INPUTS = (
    tf.TensorSpec([None, None], tf.int32, name="source_ids"),
    tf.TensorSpec([None], tf.int32, name="max_lengths"),
    tf.TensorSpec([None], tf.float32, name="length_penalty"),
    tf.TensorSpec([None, None], tf.int32, name="prefix_ids"),
    tf.TensorSpec([], tf.int32, name="beam_size"),
    tf.TensorSpec([], tf.int32, name="num_hypotheses"),
)


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """Settings of the translator's search (Section 6.1).

    Those that `SearchOptions` has, too, are described there.

    Attributes:
        max_extra_length: Int, tokens by which a translation may be longer
            than its source.
        align_layer: Int, the decoder layer whose attention aligns source and
            translation, from 0, or from the last if negative. `None` means the
            last but one, which aligns best (Garg et al., 2019); of two, the last.
        align_head: Int, the head of that layer that aligns; `None` for the mean.
        budget: Int, the most beams times positions that are searched at once.
            Larger requests are divided.
        source_language: String, ISO 639-1 code; its abbreviations do not end a
            sentence when documents are split. `""` for no abbreviations.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_length: int = 50
    align_layer: int | None = None
    align_head: int | None = None
    # 40 sentences of 100 tokens, and 150 more, with 4 beams.
    budget: int = 40_960
    penalty_offset: float = 5.0
    source_language: str = ""
    no_repeat_ngram: int = 0
    min_length: int = 0


class Search(tf.Module):
    """Beam search over built `Transformer`s with an export's settings.

    Ids from `vocabulary_size` on are never chosen. Prefixes begin with so many tags
    (`num_tags`). The attribute `options` are the `SearchOptions` for the best
    translation.
    """

    def __init__(
        self,
        transformers: Sequence[Transformer],
        vocabulary_size: int,
        settings: SearchSettings,
        num_tags: int = 0,
    ):
        super().__init__(name="search")
        self._transformers = lambda: transformers  # Not tracked: see `TextModel`.
        self._settings = settings
        padded = range(vocabulary_size, transformers[0].vocabulary_size)
        self.options = SearchOptions(
            settings.beam_size,
            settings.length_penalty,
            num_hypotheses=1,
            forbidden_ids=(PADDING_ID, BOS_ID, *padded),
            penalty_offset=settings.penalty_offset,
            no_repeat_ngram=settings.no_repeat_ngram,
            min_length=settings.min_length,
            unscored_prefix=num_tags,
        )
        # A transposed copy of the embeddings; else every call would transpose.
        self._output_kernels = [
            None
            if transformer.overrides("compute_logits")
            else tf.Variable(
                tf.transpose(transformer.embedding_of_logits.embeddings),
                trainable=False,
            )
            for transformer in transformers
        ]

    def __call__(
        self,
        source_ids,
        lengths,
        options=None,
        max_extra_length=None,
        prefix_ids=None,
        least=0,
    ) -> Hypotheses:
        """Searches with the settings, or with the given options.

        Int32 tensors: `source_ids` `(B, S)` and their `lengths` `(B,)`; padded
        `prefix_ids` `(B, P)`; `least` `(B,)`, lower bound of the limits;
        `max_extra_length`, a scalar or `(B,)`, at most that of the settings. The
        options are derived from the attribute `options`.
        """
        if options is None:
            options = self.options
        most = self._settings.max_extra_length
        if max_extra_length is None:
            max_extra_length = most
        alpha = tf.cast(options.length_penalty, tf.float32)
        return self._find(
            source_ids,
            limits_of(lengths, tf.minimum(max_extra_length, most), least),
            tf.broadcast_to(alpha, tf.shape(lengths)),
            or_empty(prefix_ids, lengths),
            options.beam_size,
            options.num_returned,
        )

    # One graph for all signatures and beam sizes: it is by far the largest.
    @tf.function(input_signature=INPUTS, autograph=False)
    def _find(
        self,
        source_ids,
        max_lengths,
        length_penalty,
        prefix_ids,
        beam_size,
        num_hypotheses,
    ):
        options = dataclasses.replace(
            self.options, beam_size=beam_size, num_hypotheses=num_hypotheses
        )

        def find(source_ids, max_lengths, length_penalty, prefix_ids):
            of_rows = dataclasses.replace(options, length_penalty=length_penalty)
            return self._search(source_ids, max_lengths, of_rows, prefix_ids)

        return self._in_chunks(
            find, options, source_ids, max_lengths, length_penalty, prefix_ids
        )

    def _search(self, source_ids, max_lengths, options, prefix_ids=None):
        """Searches for all sentences at once."""
        transformer, kernel = self._model()
        return search_in_graph(
            transformer, source_ids, max_lengths, options, prefix_ids, kernel
        )

    def sample(self, source_ids, lengths, prefix_ids, **sampling) -> Hypotheses:
        """Samples a translation of each source; `sampling` is of `Sampling`."""
        options = with_one_beam(self.options)

        def sample_rows(source_ids, max_lengths, prefix_ids, sampling):
            transformer, kernel = self._model()
            return sample_in_graph(
                transformer,
                source_ids,
                max_lengths,
                Sampling(**sampling),
                options,
                prefix_ids,
                kernel,
            )

        limits = limits_of(lengths, self._settings.max_extra_length)
        prefix_ids = or_empty(prefix_ids, lengths)
        return self._in_chunks(
            sample_rows, options, source_ids, limits, prefix_ids, sampling
        )

    def _in_chunks(self, find, options, source_ids, max_lengths, *of_rows):
        """Searches as many sentences at a time as the budget allows.

        `find` takes `source_ids`, `max_lengths` and `*of_rows`, structures of
        tensors with `B` rows; the beams are those of `options`.
        """
        lengths = count_tokens(source_ids)
        longest = longest_limit(max_lengths)

        def find_rows(rows):
            width = tf.reduce_max(tf.gather(lengths, rows))
            found = find(
                tf.gather(source_ids, rows)[:, :width],
                *tf.nest.map_structure(
                    lambda x: tf.gather(x, rows), (max_lengths, *of_rows)
                ),
            )
            missing = longest - tf.shape(found.ids)[2]
            ids = tf.pad(found.ids, [[0, 0], [0, 0], [0, missing]])
            return found._replace(ids=ids)

        shape = [tf.shape(source_ids)[0], options.num_returned]
        return in_chunks(
            options.beam_size * count_positions(lengths, max_lengths),
            self._settings.budget,
            find_rows,
            blank=Hypotheses(
                tf.fill([*shape, longest], PADDING_ID),
                tf.zeros(shape),
                tf.zeros(shape, tf.int32),
                tf.fill(shape, False),
            ),
        )

    def trace(self, source_ids, lengths, prefix_ids) -> BeamTrace:
        """Searches for the n best, and returns the trace of the search."""
        options = dataclasses.replace(self.options, num_hypotheses=None)
        transformer, kernel = self._model()
        model = make_graph_model(transformer, source_ids, options.beam_size, kernel)
        limits = limits_of(lengths, self._settings.max_extra_length)
        limits = model.limit(limits)
        _, trace = trace_beam_search(model, options, limits, prefix_ids)
        return trace

    def _model(self):
        """Returns the transformer and its kernel, or lists of several."""
        transformers, kernels = self._transformers(), self._output_kernels
        if len(transformers) == 1:
            return transformers[0], kernels[0]
        return transformers, kernels


def limits_of(lengths, max_extra_length, least=0):
    """Returns the limits of translations; 1, for EOS, if the text is empty."""
    limits = tf.maximum(lengths + max_extra_length, least)
    return tf.where(is_empty_source(lengths), 1, limits)


def or_empty(prefix_ids, lengths):
    """Returns prefixes; for `None`, empty ones."""
    return (
        tf.zeros([tf.size(lengths), 0], tf.int32) if prefix_ids is None else prefix_ids
    )


def count_tokens(ids):
    """Returns the number of tokens of padded ids."""
    return tf.reduce_sum(tf.cast(padding_mask(ids), tf.int32), axis=1)


def is_empty_source(lengths):
    """Returns which texts have no token but EOS."""
    return lengths <= 1


def clear_empty(found: Hypotheses, lengths, cut) -> Hypotheses:
    """Blanks the hypotheses of empty texts and missing ones: no ids, score 0.

    Texts `(B,)` that were `cut` are truncated in any case.
    """
    real = ~is_empty_source(lengths)[:, None] & (found.lengths > 0)
    return Hypotheses(
        ids=tf.where(real[:, :, None], found.ids, PADDING_ID),
        scores=tf.where(real, found.scores, 0.0),
        lengths=tf.where(real, found.lengths, 0),
        truncated=(cut[:, None] | found.truncated) & real,
    )
