"""The searches of an export: ids to hypotheses, one graph for many uses."""

import dataclasses

import tensorflow as tf

from export.model.beam_trace import BeamTrace
from export.model.beam_trace import trace_beam_search
from keras_transformer import Transformer
from keras_transformer.masks import BEGIN_ID
from keras_transformer.masks import PADDING_ID
from keras_transformer.search.beam_search import Hypotheses
from keras_transformer.search.graph_transformer import GraphTransformer
from keras_transformer.search.graph_transformer import graph_search_translations
from keras_transformer.search.options import SearchOptions

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
    """How the translator searches (Section 6.1).

    Attributes:
        beam_size: Int, `K`, beams a sentence.
        length_penalty: Float, `α`.
        max_extra_length: Int, tokens by which a translation may be longer
            than its source.
        align_layer: Int, the decoder layer whose attention to the source
            aligns the two, from 0, or from the last if negative. `None` means
            the last but one, which aligns best (Garg et al., 2019).
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_length: int = 50
    align_layer: int | None = None


class Search(tf.Module):
    """Beam search over a Transformer with an export's settings.

    Args:
        transformer: A built `Transformer`, which is kept out of sight: see
            `Translator`.
        vocabulary_size: Int, pieces of the tokenizer. Ids from there on are
            never chosen.
        settings: How to search.

    Attributes:
        options: `SearchOptions` for the best translation.
    """

    def __init__(
        self,
        transformer: Transformer,
        vocabulary_size: int,
        settings: SearchSettings,
    ):
        super().__init__(name="search")
        self._transformer = lambda: transformer
        self._settings = settings
        padded = range(vocabulary_size, transformer.vocabulary_size)
        self.options = SearchOptions(
            settings.beam_size,
            settings.length_penalty,
            num_hypotheses=1,
            forbidden_ids=(PADDING_ID, BEGIN_ID, *padded),
        )
        # Kept beside the embeddings, else every call would transpose them.
        self._output_kernel = tf.Variable(
            tf.transpose(transformer.embedding.embeddings), trainable=False
        )

    def __call__(
        self,
        source_ids,
        lengths,
        options=None,
        max_extra_length=None,
        prefix_ids=None,
        least=0,
    ) -> Hypotheses:
        """Searches with the settings, or with what is given instead.

        Args:
            source_ids: Int32 tensor `(B, S)`.
            lengths: Int32 tensor `(B,)`, tokens of each source.
            options: `SearchOptions`, made of the attribute `options`.
            max_extra_length: Int, or int32 tensor, a scalar or `(B,)`.
            prefix_ids: Int32 tensor `(B, P)`, padded.
            least: Int32 tensor `(B,)`, a limit below which none is set.
        """
        if options is None:
            options = self.options
        if max_extra_length is None:
            max_extra_length = self._settings.max_extra_length
        if prefix_ids is None:
            prefix_ids = tf.zeros([tf.shape(lengths)[0], 0], tf.int32)
        alpha = tf.cast(options.length_penalty, tf.float32)
        return self._find(
            source_ids,
            limits_of(lengths, max_extra_length, least),
            tf.broadcast_to(alpha, tf.shape(lengths)),
            prefix_ids,
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
            self.options,
            beam_size=beam_size,
            length_penalty=length_penalty,
            num_hypotheses=num_hypotheses,
        )
        return graph_search_translations(
            self._transformer(),
            source_ids,
            max_lengths,
            options,
            prefix_ids,
            self._output_kernel,
        )

    def trace(self, source_ids, lengths) -> BeamTrace:
        """Searches for the n best, and returns what was looked at."""
        options = dataclasses.replace(self.options, num_hypotheses=None)
        model = GraphTransformer(
            self._transformer(),
            source_ids,
            options.beam_size,
            self._output_kernel,
        )
        limits = limits_of(lengths, self._settings.max_extra_length)
        _, trace = trace_beam_search(model, options, model.limit(limits))
        return trace


def limits_of(lengths, max_extra_length, least=0):
    """Returns how long translations may be; an empty one has its end alone."""
    limits = tf.maximum(lengths + max_extra_length, least)
    return tf.where(is_empty(lengths), 1, limits)


def is_empty(lengths):
    """Tells which texts have no token but the end symbol."""
    return lengths <= 1
