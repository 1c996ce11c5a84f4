"""The leaves of the trees that a parsing model may write (Section 6.3)."""

import numpy as np
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from keras_transformer import SubwordTokenizer
from keras_transformer.search.tree_constraint import TAG, TreeConstraint
from keras_transformer.special_ids import EOS_ID, PADDING_ID
from text_processing.trees import ESCAPES

BLANK = "▁"  # SentencePiece's: begins a word.


class TreeLeaves:
    """Makes the `TreeConstraint` of sentences.

    Both sides share the tokenizer, in whose SentencePiece model the symbols are the
    brackets and tags of the treebank.
    """

    def __init__(self, tokenizer: SubwordTokenizer, proto: bytes, vocabulary_size: int):
        self._tokenizer = tokenizer
        pieces = sentencepiece_model_pb2.ModelProto.FromString(proto).pieces
        symbols = {
            entry.piece.removeprefix(BLANK): i
            for i, entry in enumerate(pieces)
            if entry.type == entry.USER_DEFINED
        }
        self._closing_of = {
            i: symbols[f"){symbol[1:]}"]
            for symbol, i in symbols.items()
            if symbol[0] == "(" and f"){symbol[1:]}" in symbols
        }
        self._tag_ids = tuple(i for symbol, i in symbols.items() if symbol[0] == "/")
        if not self._closing_of or not self._tag_ids:
            raise ValueError(
                "`proto` must have the brackets and tags of a treebank. "
                f"Received: {len(symbols)} symbols"
            )
        self._vocabulary_size = vocabulary_size
        self._begins_word = np.array(
            [entry.piece.startswith(BLANK) for entry in pieces]
        )

    def __call__(self, source_ids: tf.Tensor) -> TreeConstraint:
        """Returns the constraint for sentences, `(B, S)`.

        A word in a tree is the word of the sentence, with brackets escaped.
        """
        text = self._tokenizer.detokenize(source_ids)
        for bracket, escape in ESCAPES.items():
            text = tf.strings.regex_replace(text, f"\\{bracket}", escape)
        ids = self._tokenizer.tokenize_targets(text).to_tensor(PADDING_ID)
        ids = tf.where(ids == EOS_ID, PADDING_ID, ids)
        is_piece = ids != PADDING_ID
        begins = tf.gather(tf.constant(self._begins_word), ids) & is_piece
        # Each word but the first moves its tokens by the tag before it.
        num_words = tf.cumsum(tf.cast(begins, tf.int32), axis=1)
        columns = tf.range(tf.shape(ids)[1]) + num_words - 1
        lengths = tf.reduce_sum(tf.cast(is_piece, tf.int32), axis=1)
        lengths += tf.reduce_max(tf.pad(num_words, [[0, 0], [1, 0]]), axis=1)
        mask = tf.sequence_mask(lengths)
        rows = tf.repeat(tf.range(tf.shape(ids)[0])[:, None], tf.shape(ids)[1], axis=1)
        leaves = tf.tensor_scatter_nd_update(
            tf.where(mask, TAG, PADDING_ID),
            tf.boolean_mask(tf.stack([rows, columns], axis=-1), is_piece),
            tf.boolean_mask(ids, is_piece),
        )
        return TreeConstraint(
            self._closing_of, self._tag_ids, self._vocabulary_size, leaves
        )
