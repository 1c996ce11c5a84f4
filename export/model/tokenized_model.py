"""Tokenization and detokenization around the model, for all signatures."""

from collections.abc import Sequence

import tensorflow as tf

from export.model.request_languages import RequestLanguages
from export.model.request_splitting import MAX_CHUNK_BYTES, in_chunks
from keras_transformer import SubwordTokenizer, Transformer
from keras_transformer.masks import padding_mask
from keras_transformer.search.tensorflow.search_loop import longest_limit
from keras_transformer.special_ids import EOS_ID, PADDING_ID
from text_processing.language_tags import LanguageTags


class TextModel(tf.Module):
    """A Transformer and the tokenizer of its two sides.

    It tracks the TensorFlow variables of the model, but not the Keras model
    itself: a SavedModel that tracks Keras objects holds each variable twice,
    and loaders other than Python's read the copy that is never filled.

    Args:
        transformers: A built `Transformer`, or several: an ensemble. Texts are
            cut at the lowest `sequence_length`, the longest they were trained
            on.
        protos: Bytes of the SentencePiece model of sources, and of that of
            targets, or `None` if they share one.
        languages: The `LanguageTags` of a model of several languages, or `None`.

    Attributes:
        languages: The `RequestLanguages`; sources and targets begin with their tags.
        max_bytes: Int, maximum bytes of a source, cut before tokenization. So
            many bytes have more tokens than the model takes: no token has more
            bytes than the longest subword, and NFKC shortens text to a quarter
            at most. An exception are very long runs of blanks or of unknown
            characters, which are a single token: text after them is lost.
        max_target_bytes: Int, the same for targets.
    """

    def __init__(
        self,
        transformers: Transformer | Sequence[Transformer],
        protos: tuple[bytes, bytes | None],
        languages: LanguageTags | None = None,
    ):
        super().__init__(name="text_model")
        if isinstance(transformers, Transformer):
            transformers = [transformers]
        transformers = tuple(transformers)
        self.tokenizer = SubwordTokenizer(*protos)
        self.languages = RequestLanguages(languages, self.tokenizer)
        for transformer in transformers:
            check_sizes(self.tokenizer, transformer)
        self.sequence_length = min(t.sequence_length for t in transformers)
        self.max_bytes, self.max_target_bytes = (
            4 * longest * self.sequence_length
            for longest in longest_pieces(self.tokenizer)
        )
        self._weights = [v.value for t in transformers for v in t.weights]
        self._transformers = lambda: transformers  # Not tracked: see above.

    @property
    def transformers(self):
        return self._transformers()

    def tokenize(self, text):
        """Returns padded ids `(B, S)`, their lengths, and which were cut.

        The length of a text without a token is 1.
        """
        ids, lengths, was_cut = self._tokenize_sources(text)
        return *add_tags(self.languages.tags.source, ids, lengths), was_cut

    def is_too_long(self, text):
        """Returns which texts, in any language, `tokenize` would cut."""
        return self._tokenize_sources(text)[2]

    def _tokenize_sources(self, text):
        limit = self.sequence_length - self.languages.num_source
        return self._tokenize(text, self.tokenizer.tokenize, self.max_bytes, limit)

    def tokenize_targets(self, text):
        """Like `tokenize`, for targets."""
        limit = self.sequence_length - self.languages.num_target
        ids, lengths, was_cut = self._tokenize(
            text, self.tokenizer.tokenize_targets, self.max_target_bytes, limit
        )
        return *add_tags(self.languages.tags.target, ids, lengths), was_cut

    def _tokenize(self, text, tokenize, max_bytes, limit):
        def answer(rows):
            part, was_cut = cut_bytes(tf.gather(text, rows), max_bytes)
            # U+0000 is not text.
            part = tf.strings.regex_replace(part, r"\x00", " ")
            ids = tokenize(part)
            lengths = tf.cast(ids.row_lengths(), tf.int32)
            ids = ids.to_tensor(PADDING_ID, shape=[None, limit + 1])
            return ids, tf.minimum(lengths, limit), was_cut | (lengths > limit)

        # A byte may become many tokens: NFKC makes 33 bytes of three of them.
        count = tf.shape(text)[0]
        ids, lengths, was_cut = in_chunks(
            tf.minimum(tf.strings.length(text), max_bytes) + 1,
            MAX_CHUNK_BYTES,
            answer,
            blank=(
                tf.fill([count, limit + 1], PADDING_ID),
                tf.zeros([count], tf.int32),
                tf.fill([count], False),
            ),
        )
        return self.cut(ids, limit)[:, : longest_limit(lengths)], lengths, was_cut

    def cut(self, ids, limit):
        """Cuts padded ids at the limit and ends them in EOS."""
        ids = tf.pad(ids, [[0, 0], [0, 1]])[:, : limit + 1]
        is_cut = (tf.range(tf.shape(ids)[1] - 1) == limit - 1) & (
            ids[:, 1:] != PADDING_ID
        )
        return tf.where(is_cut, EOS_ID, ids[:, :-1])

    def detokenize(self, ids):
        """Returns texts `(B, N)` of ids `(B, N, L)`, without their tags."""
        ids = ids[:, :, self.languages.num_target :]
        shape = tf.shape(ids)
        rows = tf.reshape(ids, [shape[0] * shape[1], shape[2]])
        return tf.reshape(self.tokenizer.detokenize(rows), shape[:2])

    def pieces(self, ids):
        """Returns the subwords of padded target ids, `""` for padding."""
        return tf.where(padding_mask(ids), self.tokenizer.id_to_piece(ids), "")

    def source_pieces(self, ids):
        """Like `pieces`, for source ids."""
        pieces = self.tokenizer.source_id_to_piece(ids)
        return tf.where(padding_mask(ids), pieces, "")


def add_tags(tags, ids, lengths):
    """Returns ids after their tags, and their lengths; 1 remains 1."""
    if tags is None:
        return ids, lengths
    count = tf.where(lengths > 1, tf.shape(tags)[1], 0)
    return tf.concat([tags, ids], axis=1), lengths + count


def check_sizes(tokenizer: SubwordTokenizer, transformer: Transformer) -> None:
    """Refuses embedding matrices without a row for each token id."""
    for side, pieces, embedding in (
        ("sources", tokenizer.source_vocabulary_size, transformer.embedding_of_sources),
        ("targets", tokenizer.vocabulary_size, transformer.embedding),
    ):
        if pieces > embedding.vocabulary_size:
            raise ValueError(
                f"the tokenizer of {side} may not have more subwords than the "
                f"transformer. Received: {pieces} subwords, "
                f"vocabulary_size={embedding.vocabulary_size}"
            )


def longest_pieces(tokenizer: SubwordTokenizer) -> list[int]:
    """Returns the bytes of the longest subword of sources, and of targets."""
    return [
        int(tf.reduce_max(tf.strings.length(to_piece(tf.range(size)))))
        for to_piece, size in (
            (tokenizer.source_id_to_piece, tokenizer.source_vocabulary_size),
            (tokenizer.id_to_piece, tokenizer.vocabulary_size),
        )
    ]


def cut_bytes(text, most):
    """Returns texts of at most so many bytes, 3 or more, and which were cut."""
    lengths = tf.strings.length(text)
    # The first removed byte and the three before it; zeros after the end.
    last = tf.minimum(lengths, most - 3)
    ends = tf.strings.substr(text, last, tf.fill(tf.shape(last), 4))
    ends = tf.io.decode_raw(ends, tf.uint8, fixed_length=4)
    is_continuation = tf.cast(ends & 0xC0 == 0x80, tf.int32)
    # Preceding bytes of the same character: at most three in UTF-8.
    begun = tf.math.cumprod(is_continuation, axis=1, reverse=True)
    begun = tf.reduce_sum(begun, 1)
    kept = tf.where(lengths > most, most - begun % 4, lengths)
    return tf.strings.substr(text, tf.zeros_like(kept), kept), lengths > most
