"""Signatures of an export: a trained Transformer as TensorFlow functions."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import tensorflow as tf

from export.model.constrained_and_sampled_search import (
    CONSTRAINT_INPUTS,
    SAMPLING_INPUTS,
    ConstrainedAndSampledSearch,
)
from export.model.document_translation import translate_documents
from export.model.explanation_outputs import describe_trace
from export.model.forced_decoding import ForcedDecoder
from export.model.memory_estimates import ModelSizes, memory_bound
from export.model.request_splitting import (
    MAX_BEAM_POSITIONS,
    count_positions,
    product_of,
    within_budget,
)
from export.model.request_validation import (
    with_checked_options,
    with_invalid_rows_blanked,
)
from export.model.search import (
    Search,
    SearchSettings,
    count_tokens,
    is_empty_source,
    limits_of,
)
from export.model.tokenized_model import TextModel, strings_spec
from export.model.translation_outputs import (
    clear_empty,
    describe_best,
    suspicious_output,
)
from export.model.tree_leaves import TreeLeaves
from keras_transformer import Transformer
from keras_transformer.masks import EOS_ID, PADDING_ID, padding_mask
from keras_transformer.search.tensorflow.search_loop import longest_limit
from keras_transformer.tokenizer import UNKNOWN_ID


def scalar_spec(name, dtype=tf.int32):
    return tf.TensorSpec([], dtype, name=name)


def vector_spec(name, dtype):
    return tf.TensorSpec([None], dtype, name=name)


TEXT = (strings_spec("text"),)
PAIR = (strings_spec("source"), strings_spec("target"))
INPUTS = {
    "serving_default": TEXT,
    "translate_greedy": TEXT,
    "translate_nbest": (
        *TEXT,
        scalar_spec("beam_size"),
        scalar_spec("length_penalty", tf.float32),
        scalar_spec("max_extra_length"),
    ),
    "translate_options": (
        *TEXT,
        vector_spec("length_penalty", tf.float32),
        vector_spec("max_extra_length", tf.int32),
        strings_spec("prefix"),
    ),
    "translate_ids": (tf.TensorSpec([None, None], tf.int32, name="ids"),),
    "translate_document": TEXT,
    "translate_constrained": (*TEXT, *CONSTRAINT_INPUTS),
    "sample": (*TEXT, *SAMPLING_INPUTS),
    "score": PAIR,
    "align": PAIR,
    "explain": PAIR,
    "explain_beam": TEXT,
}
# Those that translate.
DEFAULT_SIGNATURES = (
    "serving_default",
    "translate_greedy",
    "translate_nbest",
    "translate_options",
    "translate_ids",
    "translate_document",
)


class Translator(tf.Module):
    """Transformers, their tokenizer and beam search as `tf.function`s.

    Strings are UTF-8. A text without any token gives `""` with score 0, and
    one that is longer than `sequence_length` is cut. Sentences of a batch do
    not affect each other.

    Args:
        transformers: A built `Transformer`, or several of one vocabulary: an
            ensemble, whose probabilities are the means of theirs. Sources are
            cut at the lowest `sequence_length`, the longest they were trained
            on.
        protos: Bytes of the SentencePiece model of sources, and of that of
            targets, or `None` if they share one.
        settings: The `SearchSettings`.
        names: Names of the signatures, of `INPUTS`.

    Attributes:
        signatures: Dict from the name of a signature to its `tf.function`.
        settings: The `SearchSettings`.
        tokenizer: The `SubwordTokenizer`.
        sequence_length: Int, the tokens at which a source is cut.
        precision: String, the type of weights and products.
        after_trace: Function that is called when a signature is traced.

    Raises:
        ValueError: If a vocabulary of the tokenizer exceeds a model's, if
            there is no layer `settings.align_layer`, or if an ensemble has
            vocabularies of different sizes or the signature `explain`.
    """

    def __init__(
        self,
        transformers: Transformer | Sequence[Transformer],
        protos: tuple[bytes, bytes | None],
        settings: SearchSettings,
        names: Iterable[str] = DEFAULT_SIGNATURES,
    ):
        super().__init__(name="translator")
        self._model = TextModel(transformers, protos)
        transformers = self._model.transformers
        transformer = transformers[0]
        check_ensemble(transformers, names)
        self.settings = settings
        self.tokenizer = self._model.tokenizer
        self.sequence_length = self._model.sequence_length
        self.precision = transformer.dtype_policy.name
        self.after_trace = lambda: None  # To show the progress of an export.
        find_leaves = None
        if settings.constrain_trees:
            find_leaves = TreeLeaves(
                self.tokenizer, protos[0], transformer.vocabulary_size
            )
        self._search = Search(
            transformers, self.tokenizer.vocabulary_size, settings, find_leaves
        )
        forced_decoder = ForcedDecoder(self._model, settings)
        alternatives = ConstrainedAndSampledSearch(self._model, self._search, settings)
        methods = {
            "serving_default": self.translate,
            "translate_greedy": self.translate_greedy,
            "translate_nbest": self._make_nbest(),
            "translate_options": self.translate_options,
            "translate_ids": self.translate_ids,
            "translate_document": self.translate_document,
            "translate_constrained": alternatives.translate_constrained,
            "sample": alternatives.sample,
            "score": forced_decoder.score,
            "align": forced_decoder.align,
            "explain": forced_decoder.explain,
            "explain_beam": self.explain_beam,
        }
        signatures = {
            name: tf.function(
                self._reported(methods[name]),
                input_signature=INPUTS[name],
                autograph=False,
            )
            for name in names
        }
        # Not tracked, since a SavedModel traces each tracked function.
        self._signatures = lambda: signatures

    @property
    def signatures(self):
        return self._signatures()

    def _reported(self, method: Callable) -> Callable:
        """Returns the method, which then reports that it was traced."""

        @functools.wraps(method)
        def trace(*args, **kwargs):
            outputs = method(*args, **kwargs)
            self.after_trace()
            return outputs

        return trace

    def memory_bound(self, rows: int) -> int:
        """Returns an upper bound of a request's memory, without the weights."""
        bounds = [
            memory_bound(
                ModelSizes(
                    transformer.architecture,
                    transformer.vocabulary_size,
                    self.sequence_length,
                    max(self._model.max_bytes, self._model.max_target_bytes),
                ),
                self.settings,
                self.signatures,
                rows,
            )
            for transformer in self._model.transformers
        ]
        return sum(bounds)

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences by beam search.

        Args:
            text: String tensor `(B,)`.

        Returns:
            Dict of `"translation"`, string `(B,)`; `"score"`, float32 `(B,)`,
            the log-probability over the length penalty; and `"truncated"`,
            bool `(B,)`: whether source or translation was cut at its limit.
            With a `max_length_ratio` of the settings, `"suspicious"`, bool
            `(B,)`, too.
        """
        return self._translate(text, self._search.options)

    def translate_greedy(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Like `translate`, by greedy search: faster, with lower quality."""
        greedy = dataclasses.replace(self._search.options, beam_size=1)
        return self._translate(text, greedy)

    def _translate(self, text, options):
        source_ids, lengths, cut = self._model.tokenize(text)
        found = self._search(source_ids, lengths, options)
        return self._describe(clear_empty(found, lengths, cut), lengths)

    def _describe(self, found, lengths):
        """Returns the outputs of the best translation of each text."""
        return {
            **describe_best(self._model, found),
            **suspicious_output(found, lengths, self.settings),
        }

    def _make_nbest(self):
        """Makes `translate_nbest`; its defaults become the signature's."""
        beams = tf.constant(self.settings.beam_size)
        alpha = tf.constant(self.settings.length_penalty, tf.float32)
        most = tf.constant(self.settings.max_extra_length)

        def translate_nbest(
            text, beam_size=beams, length_penalty=alpha, max_extra_length=most
        ):
            """Finds the best translations of each sentence.

            Args:
                text: String tensor `(B,)`.
                beam_size: Int32 scalar, `K`. More than that of the settings
                    must fit in their budget with the longest row.
                length_penalty: Float32 scalar, `α`.
                max_extra_length: Int32 scalar; that of the settings is the
                    most.

            Returns:
                Dict of `"translation"`, string, `"score"`, float32,
                `"length"`, int32, in tokens with EOS,
                `"truncated"`, bool, whether source or translation was cut, and
                `"valid"`, bool, all `(B, K)`, best first. Where `valid` is
                False there is no further translation.
            """
            text, beam_size, length_penalty, extra = with_checked_options(
                text,
                beam_size=beam_size,
                length_penalty=length_penalty,
                max_extra_length=max_extra_length,
            )
            source_ids, lengths, cut = self._model.tokenize(text)
            extra = tf.minimum(extra, most)
            beam_size = self._check_beams(beam_size, lengths, extra)
            options = dataclasses.replace(
                self._search.options,
                beam_size=beam_size,
                length_penalty=length_penalty,
                num_hypotheses=None,
            )
            found = self._search(source_ids, lengths, options, extra)
            cleared = clear_empty(found, lengths, cut)
            return {
                "translation": self._model.detokenize(cleared.ids),
                "score": cleared.scores,
                "length": cleared.lengths,
                "truncated": cleared.truncated,
                "valid": found.lengths > 0,
            }

        return translate_nbest

    def _check_beams(self, beam_size, lengths, extra):
        """Returns the beam size, if the budget allows it for these texts."""
        budget = self.settings.budget
        longest = longest_limit(count_positions(lengths, limits_of(lengths, extra)))
        check = tf.debugging.Assert(
            (beam_size <= self.settings.beam_size) | (beam_size * longest <= budget),
            [
                "beam_size times the positions of a row, those of its tokens "
                f"and of its translation, must be at most {budget}. Received:",
                beam_size,
                longest,
            ],
        )
        with tf.control_dependencies([check]):
            beam_size = tf.identity(beam_size)
        return within_budget(
            beam_size,
            "rows times beam_size times positions",
            tf.size(lengths),
            product_of(tf.size(lengths), beam_size, longest),
            MAX_BEAM_POSITIONS,
        )

    def translate_options(self, text, length_penalty, max_extra_length, prefix):
        """Like `translate`, with options for each sentence.

        Args:
            text: String tensor `(B,)`.
            length_penalty: Float32 tensor `(B,)`, `α`.
            max_extra_length: Int32 tensor `(B,)`; that of the settings is the
                most.
            prefix: String tensor `(B,)`, with which the translation begins,
                as the tokenizer reads it: in Unicode's form NFKC and without
                blanks at its ends.

        Returns:
            The dict of `translate`, and `"error"`, string `(B,)`: an error
            message about a sentence's options, or `""`. A sentence in error
            has no translation, and does not affect the others.
        """
        inputs, error = with_invalid_rows_blanked(
            text,
            length_penalty=length_penalty,
            max_extra_length=max_extra_length,
            prefix=prefix,
        )
        text, length_penalty, max_extra_length, prefix = inputs
        source_ids, lengths, cut = self._model.tokenize(text)
        prefix_ids, prefix_lengths, prefix_cut = self._model.tokenize_targets(prefix)
        # Without EOS.
        prefix_ids = tf.where(prefix_ids == EOS_ID, PADDING_ID, prefix_ids)
        found = self._search(
            source_ids,
            lengths,
            dataclasses.replace(self._search.options, length_penalty=length_penalty),
            max_extra_length,
            prefix_ids=prefix_ids,
            least=prefix_lengths,
        )
        found = clear_empty(found, lengths, cut | prefix_cut)
        return {**self._describe(found, lengths), "error": error}

    def translate_ids(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates token ids, for clients with their own tokenizer.

        Args:
            ids: Int32 tensor `(B, S)`, each row ended by 1, or by 0 or the
                row's end, where 1 is put. Later ids are ignored: TF Serving
                pads with a tensor's first element. Numbers that are not ids of
                a source count as unknown.

        Returns:
            Dict of `"ids"`, int32 `(B, L)`, each row ended by 1 and padded
            with 0, or of zeros where the source is empty; `"score"`, float32
            `(B,)`; and `"truncated"`, bool `(B,)`, as of `translate`.
        """
        # One more than the limit, to detect longer sources.
        ids = ids[:, : self.sequence_length + 1]
        known = (ids >= 0) & (ids < self.tokenizer.source_vocabulary_size)
        ids = tf.where(known, ids, UNKNOWN_ID)
        ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=EOS_ID)
        ids = tf.where(ids == PADDING_ID, EOS_ID, ids)
        ends = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), 1, exclusive=True)
        ids = tf.where(ends > 0, PADDING_ID, ids)
        cut = tf.reduce_any(padding_mask(ids[:, self.sequence_length :]), 1)
        ids = self._model.cut(ids)
        lengths = count_tokens(ids)
        ids = ids[:, : longest_limit(lengths)]
        found = self._search(ids, lengths)
        found = clear_empty(found, lengths, cut)
        return {
            "ids": found.ids[:, 0],
            "score": found.scores[:, 0],
            "truncated": found.truncated[:, 0],
        }

    def translate_document(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates documents: their sentences, not the text between them.

        Args:
            text: String tensor `(B,)`. `split_text` finds the sentences.

        Returns:
            The dict of `translate`; `"score"` is the mean of the sentences'.
        """
        doubts = ["truncated"]
        if self.settings.max_length_ratio:
            doubts.append("suspicious")
        return translate_documents(
            text,
            self.settings.source_language,
            self.sequence_length - 1,
            lambda sentences: self._model.tokenize(sentences)[2],
            self.translate,
            doubts,
        )

    def explain_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the candidates of `translate_nbest` in each of `L` steps.

        The `C` candidates of a step are the `2 K` best continuations, best
        first. The search keeps the finished ones and the best `K` active ones,
        and prunes the others.

        Args:
            text: String tensor `(B,)`.

        Returns:
            Dict of `"tokens"`, string `(B, L, C)`, the last subword of each
            candidate; `"parents"`, int32, the candidate of the previous step
            that it continues (0 in the first step), or -1 for no candidate;
            `"log_probabilities"`, float32, of all its tokens; `"kept"` and
            `"ended"`, bool, all `(B, L, C)`; and `"penalties"`, float32
            `(B, L)`, the length penalty at a step. The score of a finished
            candidate is its log-probability divided by that.
        """
        source_ids, lengths, _ = self._model.tokenize(text)
        limits = limits_of(lengths, self.settings.max_extra_length)
        longest = longest_limit(count_positions(lengths, limits))
        source_ids, lengths = within_budget(
            (source_ids, lengths),
            "rows times beam_size times positions",
            tf.size(lengths),
            product_of(tf.size(lengths), self.settings.beam_size, longest),
            self.settings.budget,
        )
        trace = self._search.trace(source_ids, lengths)
        return describe_trace(
            trace,
            is_empty_source(lengths),
            self._search.options,
            self.tokenizer.id_to_piece,
        )


def check_ensemble(transformers, names):
    """Refuses models whose probabilities have no mean.

    Args:
        transformers: Tuple of `Transformer`s.
        names: Names of the signatures.

    Raises:
        ValueError: See `Translator`.
    """
    sizes = {transformer.vocabulary_size for transformer in transformers}
    if len(sizes) > 1:
        raise ValueError(
            "the models of an ensemble must have vocabularies of one size. "
            f"Received: {', '.join(map(str, sorted(sizes)))}"
        )
    if len(transformers) > 1 and "explain" in names:
        raise ValueError(
            "an ensemble must be without the signature explain, the attention "
            f"of one model. Received: {len(transformers)} models"
        )
