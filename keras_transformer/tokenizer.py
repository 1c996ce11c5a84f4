"""Subword tokenizer inside the TensorFlow graph (Section 5.1)."""

import hashlib
import os
import pathlib
import re
from typing import Any

import numpy as np

from keras_transformer.argument_checks import check_run_file
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID

try:
    import tensorflow as tf
    import tensorflow_text as tf_text
    from tensorflow_text.python.ops.sentencepiece_tokenizer import (
        gen_sentencepiece_tokenizer,
    )
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "SubwordTokenizer needs TensorFlow: pip install "
        f"'keras-transformer-translation[tensorflow]'. Received: {error}",
        name=error.name,
    ) from None

BYTE = re.compile(b"<0x([0-9A-F]{2})>")  # The subword of a byte.


class SubwordTokenizer(tf.Module):
    """Turns text into ids of a SentencePiece model and back.

    The SentencePiece model becomes part of a SavedModel that contains the
    tokenizer. Ids 0 to 3 are padding, EOS, unknown and BOS. Converted models
    may have one SentencePiece model for sources and another for targets.

    Args:
        model_proto: Bytes of a `.model` file of the sentencepiece library,
            trained with `pad_id=0, eos_id=1, unk_id=2, bos_id=3`.
        target_proto: Bytes of the `.model` file of the targets. `None` means
            that both sides share one.
        name: String, the name of the module.

    Attributes:
        vocabulary_size: Int, pieces of targets.
        source_vocabulary_size: Int, pieces of sources.

    Raises:
        ValueError: If `model_proto` or `target_proto` is not such a model.

    Example:
        >>> tokenizer = SubwordTokenizer(pathlib.Path("tokenizer.model").read_bytes())
        >>> ids = tokenizer.tokenize(["A cat.", ""])  # Ragged; each ends in 1.
        >>> tokenizer.detokenize(ids)
        [b"A cat.", b""]
    """

    def __init__(
        self,
        model_proto: bytes,
        target_proto: bytes | None = None,
        name: str = "subword_tokenizer",
    ):
        super().__init__(name=name)
        self._source = self._target = load_sentencepiece("model_proto", model_proto)
        if target_proto is not None:
            self._target = load_sentencepiece("target_proto", target_proto)
        self.vocabulary_size = int(self._target.vocab_size())
        self.source_vocabulary_size = int(self._source.vocab_size())
        self._bytes = byte_by_id(self._target)

    @classmethod
    def from_pretrained(cls, run_dir: str | os.PathLike) -> "SubwordTokenizer":
        """Reads the tokenizer of a run folder.

        Args:
            run_dir: Path of the folder that `train` or `convert` wrote.

        Returns:
            A `SubwordTokenizer`.

        Raises:
            ValueError: If the folder has no tokenizer.
        """
        return cls(*read_protos(run_dir))

    def tokenize(self, strings: Any) -> Any:
        """Turns sources into ids.

        Args:
            strings: String tensor `(B,)`, UTF-8. Other bytes are read as
                U+FFFD, the replacement character.

        Returns:
            Int32 ragged tensor `(B, None)`; each row ends in EOS.
        """
        return tokenize(self._source, strings)

    def tokenize_targets(self, strings: Any) -> Any:
        """Turns targets into ids, like `tokenize`."""
        return tokenize(self._target, strings)

    def id_to_piece(self, ids: Any) -> Any:
        """Returns the subword of each target id, strings of the same shape."""
        return self._target.id_to_string(ids)

    def source_id_to_piece(self, ids: Any) -> Any:
        """Returns the subword of each source id, strings of the same shape."""
        return self._source.id_to_string(ids)

    def detokenize(self, ids: Any) -> Any:
        """Turns ids of targets into text.

        Args:
            ids: Int tensor `(B, T)`, ragged or padded. Ids after the first EOS
                of a row are ignored, and so are padding, BOS, and bytes that are
                no whole character.

        Returns:
            String tensor `(B,)`, UTF-8.
        """
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(PADDING_ID)
        ids = tf.cast(ids, tf.int32)
        ended = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) > 0
        kept = ~ended & (ids != PADDING_ID) & (ids != BOS_ID)
        ids = tf.ragged.boolean_mask(ids, kept)
        return self._target.detokenize(self._drop_incomplete_characters(ids))

    def _drop_incomplete_characters(self, ids):
        """Drops bytes that SentencePiece would replace by U+FFFD each."""
        if self._bytes.max() < 0x80:  # No subword is a byte.
            return ids
        strings = tf.constant([bytes([value]) for value in range(256)])
        values = tf.cast(tf.gather(self._bytes, ids), tf.int32)
        found = tf.strings.reduce_join(tf.gather(strings, values), axis=1)
        characters, starts = tf.strings.unicode_split_with_offsets(
            found, "UTF-8", errors="ignore"
        )
        ends = starts.values + tf.cast(tf.strings.length(characters.values), tf.int64)
        kept = starts.with_values(tf.ragged.range(starts.values, ends))
        return tf.gather(ids, kept.merge_dims(1, 2), batch_dims=1)


def read_protos(run_dir):
    """Returns the SentencePiece models of a run folder, `None` for no second.

    Raises:
        ValueError: If the folder has no tokenizer.
    """
    source = check_run_file(run_dir, "tokenizer.model")
    target = pathlib.Path(run_dir, "target_tokenizer.model")
    return source.read_bytes(), target.read_bytes() if target.exists() else None


def load_sentencepiece(argument, proto):
    """Loads a SentencePiece model; refuses other special ids."""
    if not isinstance(proto, bytes):
        raise ValueError(
            f"`{argument}` must be bytes. "
            f"Received: {argument} of type {type(proto).__name__}"
        )
    # FastSentencepieceTokenizer gives different ids for BPE models.
    try:
        model = tf_text.SentencepieceTokenizer(proto)
        make_permanent(model, proto)
        specials = [PADDING_ID, EOS_ID, UNKNOWN_ID, BOS_ID]
        pieces = model.id_to_string(specials).numpy().tolist()
    except tf.errors.OpError as error:
        raise ValueError(
            f"`{argument}` must be a SentencePiece model. "
            f"Received: {len(proto)} bytes ({error.message})"
        ) from error
    if pieces != [b"<pad>", b"</s>", b"<unk>", b"<s>"]:
        raise ValueError(
            f"`{argument}` must have <pad>, </s>, <unk> and <s> as ids "
            f"0 to 3. Received: {pieces}"
        )
    return model


def make_permanent(model, proto):
    """Lets a tokenizer survive `tf.random.set_seed` (tensorflow/text#570).

    Seeding deletes the ops that ran eagerly, and with them the resources that
    they own. No op owns a resource with a shared name.
    """
    resource = model._model_resource
    resource._resource_handle = gen_sentencepiece_tokenizer.sentencepiece_op(
        model=proto, shared_name=hashlib.sha256(proto).hexdigest()
    )


def byte_by_id(model):
    """Returns the byte of each id, that of "a" for other subwords, as an array."""
    pieces = model.id_to_string(tf.range(model.vocab_size())).numpy()
    found = map(BYTE.fullmatch, pieces)
    return np.array(
        [int(match[1], 16) if match else ord("a") for match in found], np.uint8
    )


def tokenize(model, strings):
    ids = model.tokenize(tf.convert_to_tensor(strings, tf.string))
    ends = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids, ends], axis=1)
