"""Subwords (Vaswani et al., 2017, Section 5.1), inside the TensorFlow graph."""

import tensorflow as tf
import tensorflow_text as tf_text

from keras_transformer.masks import BEGIN_ID
from keras_transformer.masks import END_ID
from keras_transformer.masks import PADDING_ID

UNKNOWN_ID = 2


class SubwordTokenizer(tf.Module):
    """Turns text into ids of a SentencePiece model and back.

    The model travels inside the SavedModel of whatever holds the tokenizer.
    Ids 0 to 3 are padding, end, unknown and begin.

    Args:
        model_proto: Bytes of a `.model` file of the sentencepiece library,
            trained with `pad_id=0, eos_id=1, unk_id=2, bos_id=3`.
        name: String, the name of the module.

    Raises:
        ValueError: If `model_proto` is no such model.

    Example:
        >>> tokenizer = SubwordTokenizer(
        ...     pathlib.Path("tokenizer.model").read_bytes()
        ... )
        >>> ids = tokenizer.tokenize(["A cat.", ""])  # Ragged; each ends in 1.
        >>> tokenizer.detokenize(ids)
        [b"A cat.", b""]
    """

    def __init__(self, model_proto, name="subword_tokenizer"):
        super().__init__(name=name)
        if not isinstance(model_proto, bytes):
            raise ValueError(
                "`model_proto` must be bytes. "
                f"Received: model_proto of type {type(model_proto).__name__}"
            )
        # FastSentencepieceTokenizer gives other ids on BPE models.
        try:
            self._tokenizer = tf_text.SentencepieceTokenizer(model_proto)
            specials = [PADDING_ID, END_ID, UNKNOWN_ID, BEGIN_ID]
            pieces = self._tokenizer.id_to_string(specials).numpy().tolist()
        except tf.errors.OpError as error:
            raise ValueError(
                "`model_proto` must be a SentencePiece model. "
                f"Received: {len(model_proto)} bytes ({error.message})"
            ) from error
        if pieces != [b"<pad>", b"</s>", b"<unk>", b"<s>"]:
            raise ValueError(
                "`model_proto` must have <pad>, </s>, <unk> and <s> as ids "
                f"0 to 3. Received: {pieces}"
            )
        self.vocabulary_size = int(self._tokenizer.vocab_size())

    def tokenize(self, strings):
        """Turns text into ids.

        Args:
            strings: String tensor `(B,)`, UTF-8. Other bytes are read as
                U+FFFD, the replacement character.

        Returns:
            Int32 ragged tensor `(B, None)`; each row ends in the end symbol.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        ids = self._tokenizer.tokenize(strings)
        ends = tf.fill([ids.nrows(), 1], END_ID)
        return tf.concat([ids, ends], axis=1)

    def id_to_piece(self, ids):
        """Returns the piece of each id, a string tensor of the same shape."""
        return self._tokenizer.id_to_string(ids)

    def detokenize(self, ids):
        """Turns ids into text.

        Args:
            ids: Int tensor `(B, T)`, ragged or padded. What follows the first
                end symbol of a row is left out, and so are padding and begin.

        Returns:
            String tensor `(B,)`, UTF-8.
        """
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(PADDING_ID)
        ids = tf.cast(ids, tf.int32)
        ended = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1) > 0
        kept = ~ended & (ids != PADDING_ID) & (ids != BEGIN_ID)
        return self._tokenizer.detokenize(tf.ragged.boolean_mask(ids, kept))
