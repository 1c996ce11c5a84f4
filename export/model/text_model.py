"""Text to ids and back: what every signature of an export needs."""

import tensorflow as tf

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

    Attributes:
        tokenizer: The `SubwordTokenizer`.
        transformer: What was given.

    Raises:
        ValueError: If the vocabulary of the tokenizer exceeds the model's.
    """

    def __init__(self, transformer: Transformer, model_proto: bytes):
        super().__init__(name="text_model")
        self.tokenizer = SubwordTokenizer(model_proto)
        if self.tokenizer.vocabulary_size > transformer.vocabulary_size:
            raise ValueError(
                "`model_proto` may not have more pieces than the transformer. "
                f"Received: {self.tokenizer.vocabulary_size} pieces, "
                f"vocabulary_size={transformer.vocabulary_size}"
            )
        self._weights = [v.value for v in transformer.weights]
        self._transformer = lambda: transformer  # Not tracked: see above.

    @property
    def transformer(self):
        return self._transformer()

    def tokenize(self, text):
        """Returns padded ids `(B, S)`, their lengths, and which were cut."""
        limit = self.transformer.sequence_length
        text = tf.strings.regex_replace(text, r"\x00", " ")  # NUL is no text.
        ids = self.tokenizer.tokenize(text)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        ids = self.cut(ids[:, : limit + 1].to_tensor(PADDING_ID))
        return ids, tf.minimum(lengths, limit), lengths > limit

    def cut(self, ids):
        """Cuts padded ids at the limit, where the last is the end symbol."""
        limit = self.transformer.sequence_length
        ids = tf.pad(ids, [[0, 0], [0, 1]])[:, : limit + 1]
        goes_on = (tf.range(tf.shape(ids)[1] - 1) == limit - 1) & (
            ids[:, 1:] != PADDING_ID
        )
        return tf.where(goes_on, END_ID, ids[:, :-1])

    def detokenize(self, ids):
        """Returns texts `(B, N)` of ids `(B, N, L)`."""
        shape = tf.shape(ids)
        rows = tf.reshape(ids, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.tokenizer.detokenize(rows), shape[:2])

    def pieces(self, ids):
        """Returns the pieces of padded ids, `""` of padding."""
        pieces = self.tokenizer.id_to_piece(ids)
        return tf.where(padding_mask(ids), pieces, "")
