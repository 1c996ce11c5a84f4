"""Text to ids and back: what every signature of an export needs."""

import tensorflow as tf

from export.model.search import SearchSettings
from keras_transformer import SubwordTokenizer
from keras_transformer import Transformer
from keras_transformer.masks import END_ID
from keras_transformer.masks import PADDING_ID
from keras_transformer.masks import padding_mask


def strings(name):
    return tf.TensorSpec([None], tf.string, name=name)


class TextModel(tf.Module):
    """A Transformer and its tokenizer.

    It tracks the plain TensorFlow variables of the model and keeps the model
    itself out of sight. A SavedModel that tracks Keras objects holds each
    variable twice, and every loader but Python's reads the copy that nobody
    fills.

    Args:
        transformer: A built `Transformer`. Texts are cut at its
            `sequence_length`, the longest it was trained on.
        model_proto: Bytes, the SentencePiece model.
        settings: How to search and align.

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
        self._tokenizer = SubwordTokenizer(model_proto)
        if self._tokenizer.vocabulary_size > transformer.vocabulary_size:
            raise ValueError(
                "`model_proto` may not have more pieces than the transformer. "
                f"Received: {self._tokenizer.vocabulary_size} pieces, "
                f"vocabulary_size={transformer.vocabulary_size}"
            )
        layer, layers = (
            settings.align_layer,
            transformer.architecture.num_layers,
        )
        if layer is not None and not -layers <= layer < layers:
            raise ValueError(
                f"`align_layer` must be between {-layers} and {layers - 1}. "
                f"Received: align_layer={layer}"
            )
        self._weights = [v.value for v in transformer.weights]
        self._transformer = lambda: transformer  # Not tracked: see above.
        self._settings = settings

    @property
    def settings(self):
        return self._settings

    @property
    def tokenizer(self):
        return self._tokenizer

    @property
    def sequence_length(self):
        return self._transformer().sequence_length

    @property
    def precision(self):
        return self._transformer().dtype_policy.name

    def _tokenize(self, text):
        """Returns padded ids `(B, S)`, their lengths, and which were cut."""
        limit = self._transformer().sequence_length
        text = tf.strings.regex_replace(text, r"\x00", " ")  # NUL is no text.
        ids = self._tokenizer.tokenize(text)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        ids = self._cut(ids[:, : limit + 1].to_tensor(PADDING_ID))
        return ids, tf.minimum(lengths, limit), lengths > limit

    def _cut(self, ids):
        """Cuts padded ids at the limit; the end symbol is the last there."""
        limit = self._transformer().sequence_length
        ids = tf.pad(ids, [[0, 0], [0, 1]])[:, : limit + 1]
        goes_on = (tf.range(tf.shape(ids)[1] - 1) == limit - 1) & (
            ids[:, 1:] != PADDING_ID
        )
        return tf.where(goes_on, END_ID, ids[:, :-1])

    def _detokenize(self, hypotheses):
        """Returns the text of hypotheses, `(B, N)`."""
        shape = tf.shape(hypotheses.ids)
        rows = tf.reshape(hypotheses.ids, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self._tokenizer.detokenize(rows), shape[:2])

    def _pieces(self, ids):
        pieces = self._tokenizer.id_to_piece(ids)
        return tf.where(padding_mask(ids), pieces, "")
