"""Strings in, strings out: a trained Transformer as one TensorFlow graph."""

import dataclasses

import tensorflow as tf

from keras_transformer import SubwordTokenizer
from keras_transformer import Transformer
from keras_transformer.decoding import BEGIN_ID
from keras_transformer.decoding import END_ID
from keras_transformer.masks import PADDING_ID
from keras_transformer.translation import search_translations


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """How the translator searches (Section 6.1).

    Attributes:
        beam_size: Int, `K`, beams a sentence.
        length_penalty: Float, `α`.
        max_extra_length: Int, tokens by which a translation may be longer
            than its source.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    max_extra_length: int = 50


class Translator(tf.Module):
    """A Transformer, its tokenizer and beam search as one `tf.function`.

    It tracks the plain TensorFlow variables of the model and keeps the model
    itself out of sight. A SavedModel that tracks Keras objects holds each
    variable twice, and every loader but Python's reads the copy that nobody
    fills.

    Args:
        transformer: A built float32 `Transformer`. Sources are cut at its
            `sequence_length`, the longest it was trained on.
        model_proto: Bytes, the SentencePiece model.
        settings: How to search.

    Raises:
        ValueError: If the vocabulary of the tokenizer exceeds the model's.
    """

    def __init__(
        self,
        transformer: Transformer,
        model_proto: bytes,
        settings: SearchSettings,
    ):
        super().__init__(name="translator")
        self._tokenizer = SubwordTokenizer(model_proto)
        if self._tokenizer.vocabulary_size > transformer.vocabulary_size:
            raise ValueError(
                "`model_proto` may not have more pieces than the transformer. "
                f"Received: {self._tokenizer.vocabulary_size} pieces, "
                f"vocabulary_size={transformer.vocabulary_size}"
            )
        self._weights = [v.value for v in transformer.variables]
        self._transformer = lambda: transformer  # Not tracked: see above.
        self._settings = settings

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, name="text")],
        autograph=False,
    )
    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences.

        Args:
            text: String tensor `(B,)`, UTF-8.

        Returns:
            Dict of `"translation"`, string `(B,)`; `"score"`, float32 `(B,)`,
            the log-probability over the length penalty; and `"truncated"`,
            bool `(B,)`: whether source or translation was cut at its limit. A
            text without any token gives `""` with score 0.
        """
        source_ids, lengths, cut = self._tokenize(text)
        empty = lengths == 1  # The end symbol alone.
        best = self._search(source_ids, lengths, empty)
        translation = self._tokenizer.detokenize(best.ids[:, 0])
        return {
            "translation": tf.where(empty, "", translation),
            "score": tf.where(empty, 0.0, best.scores[:, 0]),
            "truncated": cut | (best.truncated[:, 0] & ~empty),
        }

    def _tokenize(self, text):
        """Returns padded ids `(B, S)`, their lengths, and which were cut."""
        limit = self._transformer().sequence_length
        text = tf.strings.regex_replace(text, r"\x00", " ")  # NUL is no text.
        ids = self._tokenizer.tokenize(text)
        full = tf.cast(ids.row_lengths(), tf.int32)
        lengths = tf.minimum(full, limit)
        ids = ids[:, :limit].to_tensor(PADDING_ID)
        last = tf.range(tf.shape(ids)[1]) == lengths[:, None] - 1
        return tf.where(last, END_ID, ids), lengths, full > limit

    def _search(self, source_ids, lengths, empty):
        transformer, settings = self._transformer(), self._settings
        limits = lengths + settings.max_extra_length
        padded = range(
            self._tokenizer.vocabulary_size, transformer.vocabulary_size
        )
        return search_translations(
            transformer,
            source_ids,
            tf.where(empty, 1, limits),
            settings.beam_size,
            settings.length_penalty,
            forbidden_ids=(PADDING_ID, BEGIN_ID, *padded),
        )
