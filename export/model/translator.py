"""Strings in, strings out: a trained Transformer as TensorFlow graphs."""

import dataclasses

import tensorflow as tf

from export.model.explanations import describe_trace
from export.model.request_checks import describe_errors
from export.model.request_checks import with_checked_options
from export.model.request_checks import with_equal_rows
from export.model.search import Search
from export.model.search import SearchSettings
from export.model.search import is_empty
from export.model.teacher import Teacher
from export.model.text_model import TextModel
from export.model.text_model import strings
from keras_transformer import Transformer
from keras_transformer.masks import END_ID
from keras_transformer.masks import PADDING_ID
from keras_transformer.masks import padding_mask
from keras_transformer.search.beam_search import Hypotheses
from keras_transformer.search.graph_search import longest_of
from keras_transformer.text.tokenizer import UNKNOWN_ID


def scalar(name, dtype=tf.int32):
    return tf.TensorSpec([], dtype, name=name)


class Translator(tf.Module):
    """A Transformer, its tokenizer and beam search as `tf.function`s.

    Strings are UTF-8. A text without any token gives `""` with score 0, and
    one that is longer than `sequence_length` is cut. No row looks at another.

    Args:
        transformer: A built `Transformer`. Sources are cut at its
            `sequence_length`, the longest it was trained on.
        model_proto: Bytes, the SentencePiece model.
        settings: How to search.

    Attributes:
        signatures: Dict from the name of a signature to its function.
        settings: What was given.
        tokenizer: The `SubwordTokenizer`.
        sequence_length: Int, the tokens at which a source is cut.
        precision: String, the type of weights and products.

    Raises:
        ValueError: If the vocabulary of the tokenizer exceeds the model's, or
            if there is no layer `settings.align_layer`.
    """

    def __init__(
        self,
        transformer: Transformer,
        model_proto: bytes,
        settings: SearchSettings,
    ):
        super().__init__(name="translator")
        self._model = TextModel(transformer, model_proto)
        self.settings = settings
        self.tokenizer = self._model.tokenizer
        self.sequence_length = transformer.sequence_length
        self.precision = transformer.dtype_policy.name
        self._search = Search(
            transformer, self.tokenizer.vocabulary_size, settings
        )
        self.translate_nbest = self._make_nbest()
        self._teacher = Teacher(self._model, settings)
        self.score = self._teacher.score
        self.align = self._teacher.align
        self.explain = self._teacher.explain

    @property
    def signatures(self):
        return {
            "serving_default": self.translate,
            "translate_greedy": self.translate_greedy,
            "translate_nbest": self.translate_nbest,
            "translate_options": self.translate_options,
            "translate_ids": self.translate_ids,
            "score": self.score,
            "align": self.align,
            "explain": self.explain,
            "explain_beam": self.explain_beam,
        }

    @tf.function(input_signature=[strings("text")], autograph=False)
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences by beam search.

        Args:
            text: String tensor `(B,)`.

        Returns:
            Dict of `"translation"`, string `(B,)`; `"score"`, float32 `(B,)`,
            the log-probability over the length penalty; and `"truncated"`,
            bool `(B,)`: whether source or translation was cut at its limit.
        """
        return self._translate(text, self._search.options)

    @tf.function(input_signature=[strings("text")], autograph=False)
    def translate_greedy(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Does what `translate` does with one beam: less well, and faster."""
        greedy = dataclasses.replace(self._search.options, beam_size=1)
        return self._translate(text, greedy)

    def _translate(self, text, options):
        source_ids, lengths, cut = self._model.tokenize(text)
        found = self._search(source_ids, lengths, options)
        return self._describe(blank_out(found, lengths, cut))

    def _describe(self, found):
        """Returns the outputs that tell the best translation of each text."""
        return {
            "translation": self._model.detokenize(found.ids)[:, 0],
            "score": found.scores[:, 0],
            "truncated": found.truncated[:, 0],
        }

    def _make_nbest(self):
        """Makes `translate_nbest`; its defaults become the signature's."""
        beams = tf.constant(self.settings.beam_size)
        alpha = tf.constant(self.settings.length_penalty, tf.float32)
        most = tf.constant(self.settings.max_extra_length)

        @tf.function(
            input_signature=[
                strings("text"),
                scalar("beam_size"),
                scalar("length_penalty", tf.float32),
                scalar("max_extra_length"),
            ],
            autograph=False,
        )
        def translate_nbest(
            text, beam_size=beams, length_penalty=alpha, max_extra_length=most
        ):
            """Finds the best translations of each sentence.

            Args:
                text: String tensor `(B,)`.
                beam_size: Int32 scalar, `K`.
                length_penalty: Float32 scalar, `α`.
                max_extra_length: Int32 scalar.

            Returns:
                Dict of `"translations"`, string, `"scores"`, float32,
                `"lengths"`, int32, in tokens with the end symbol,
                `"truncated"`, bool, whether source or translation was cut, and
                `"valid"`, bool, all `(B, K)`, best first. Where `valid` is
                False there is no further translation.
            """
            text, beam_size, length_penalty, extra = with_checked_options(
                text, beam_size, length_penalty, max_extra_length
            )
            source_ids, lengths, cut = self._model.tokenize(text)
            options = dataclasses.replace(
                self._search.options,
                beam_size=beam_size,
                length_penalty=length_penalty,
                num_hypotheses=None,
            )
            found = self._search(source_ids, lengths, options, extra)
            told = blank_out(found, lengths, cut)
            return {
                "translations": self._model.detokenize(told.ids),
                "scores": told.scores,
                "lengths": told.lengths,
                "truncated": told.truncated,
                "valid": found.lengths > 0,
            }

        return translate_nbest

    @tf.function(
        input_signature=[
            strings("text"),
            tf.TensorSpec([None], tf.float32, name="length_penalty"),
            tf.TensorSpec([None], tf.int32, name="max_extra_length"),
            strings("prefix"),
        ],
        autograph=False,
    )
    def translate_options(self, text, length_penalty, max_extra_length, prefix):
        """Does what `translate` does, with options for each sentence.

        Args:
            text: String tensor `(B,)`.
            length_penalty: Float32 tensor `(B,)`, `α`.
            max_extra_length: Int32 tensor `(B,)`.
            prefix: String tensor `(B,)`, with which the translation begins,
                as the tokenizer reads it: in Unicode's form NFKC and without
                blanks at its ends.

        Returns:
            The dict of `translate`, and `"error"`, string `(B,)`: what is
            wrong with a row's options, or `""`. A row in error has no
            translation, and the others are as they would be without it.
        """
        text, length_penalty, max_extra_length, prefix = with_equal_rows(
            text=text,
            length_penalty=length_penalty,
            max_extra_length=max_extra_length,
            prefix=prefix,
        )
        error = describe_errors(length_penalty, max_extra_length)
        wrong = error != ""
        source_ids, lengths, cut = self._model.tokenize(
            tf.where(wrong, "", text)
        )
        prefix_ids, prefix_lengths, prefix_cut = self._model.tokenize(prefix)
        # Without its end symbol.
        prefix_ids = tf.where(prefix_ids == END_ID, PADDING_ID, prefix_ids)
        found = self._search(
            source_ids,
            lengths,
            dataclasses.replace(
                self._search.options,
                length_penalty=tf.where(wrong, 0.0, length_penalty),
            ),
            tf.where(wrong, 0, max_extra_length),
            prefix_ids=prefix_ids,
            least=prefix_lengths,
        )
        found = blank_out(found, lengths, cut | prefix_cut)
        return {**self._describe(found), "error": error}

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")],
        autograph=False,
    )
    def translate_ids(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates token ids, for clients with their own tokenizer.

        Args:
            ids: Int32 tensor `(B, S)`, each row ended by 1, or by 0 or the
                row's end, where 1 is put. What follows is left out: TF Serving
                pads with a tensor's first element. What is no id of the
                vocabulary counts as unknown.

        Returns:
            Dict of `"ids"`, int32 `(B, L)`, each row ended by 1 and padded
            with 0, or of zeros where the source is empty; `"scores"`, float32
            `(B,)`; and `"truncated"`, bool `(B,)`, as of `translate`.
        """
        known = (ids >= 0) & (ids < self.tokenizer.vocabulary_size)
        ids = tf.where(known, ids, UNKNOWN_ID)
        ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=END_ID)
        ids = tf.where(ids == PADDING_ID, END_ID, ids)
        ends = tf.cumsum(tf.cast(ids == END_ID, tf.int32), 1, exclusive=True)
        ids = tf.where(ends > 0, PADDING_ID, ids)
        cut = tf.reduce_any(padding_mask(ids[:, self.sequence_length :]), 1)
        ids = self._model.cut(ids)
        lengths = tf.reduce_sum(tf.cast(padding_mask(ids), tf.int32), axis=1)
        ids = ids[:, : longest_of(lengths)]
        found = self._search(ids, lengths)
        found = blank_out(found, lengths, cut)
        return {
            "ids": found.ids[:, 0],
            "scores": found.scores[:, 0],
            "truncated": found.truncated[:, 0],
        }

    @tf.function(input_signature=[strings("text")], autograph=False)
    def explain_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Shows what `translate_nbest` looks at on its way, in `L` steps.

        The `C` candidates of a step are the `2 K` best continuations, best
        first. Of these, those that end and the best `K` that do not are kept,
        and the others pruned.

        Args:
            text: String tensor `(B,)`.

        Returns:
            Dict of `"tokens"`, string `(B, L, C)`, the last piece of each
            candidate; `"parents"`, int32, the candidate of the step before
            that it continues (0 in the first), or -1 where there is none;
            `"log_probabilities"`, float32, of all its tokens; `"kept"` and
            `"ended"`, bool, all `(B, L, C)`; and `"penalties"`, float32
            `(B, L)`, of the length that a candidate has in a step. What ended
            scores its log-probability over that.
        """
        source_ids, lengths, _ = self._model.tokenize(text)
        trace = self._search.trace(source_ids, lengths)
        return describe_trace(
            trace,
            is_empty(lengths),
            self.settings.length_penalty,
            self.tokenizer.id_to_piece,
        )


def blank_out(found: Hypotheses, lengths, cut) -> Hypotheses:
    """Blanks what no text or no hypothesis stands behind: `""`, score 0.

    Args:
        found: What the search found, `N` a text.
        lengths: Int32 tensor `(B,)`, tokens of each text. One without any
            but its end symbol has no translation, whatever was found.
        cut: Bool tensor `(B,)`, which texts were cut.

    Returns:
        `Hypotheses`, those of texts that were cut `truncated` too.
    """
    real = ~is_empty(lengths)[:, None] & (found.lengths > 0)
    return Hypotheses(
        ids=tf.where(real[:, :, None], found.ids, PADDING_ID),
        scores=tf.where(real, found.scores, 0.0),
        lengths=tf.where(real, found.lengths, 0),
        truncated=(cut[:, None] | found.truncated) & real,
    )
