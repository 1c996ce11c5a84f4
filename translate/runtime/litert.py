"""Signatures of an export for LiteRT, with the interface of a SavedModel's."""

import pathlib

import numpy as np
import tensorflow as tf

from export.litert.runtime import load_translator
from export.model.document_translation import translate_documents


class LiteRTModel:
    """A version of an export for LiteRT.

    Args:
        folder: Folder that `write_litert` wrote.

    Attributes:
        signatures: Functions from tensors to a dict of tensors, by name: some
            of those of `export.model.translator.INPUTS`, with their outputs
            (but the `length` of `translate_nbest`).

    Raises:
        UserError: If LiteRT is not installed.
    """

    def __init__(self, folder: pathlib.Path):
        self._translator = load_translator(folder)
        self._settings = self._translator.settings
        self.signatures = {
            "serving_default": self._translate,
            "translate_document": self._translate_document,
            "translate_nbest": self._translate_nbest,
            "sample": self._sample,
            "align": self._align,
            "score": self._score,
        }

    def _translate(self, text):
        return as_outputs(self._translator.translate(to_list(text)))

    def _translate_document(self, text):
        return translate_documents(
            text,
            self._settings["source_language"],
            self._settings["max_source_length"] - 1,
            self._is_too_long,
            self._translate,
        )

    def _is_too_long(self, text):
        """Returns whether texts have more tokens than the model's limit."""
        cut = [self._translator.encode_source(line)[1] for line in to_list(text)]
        return tf.constant(cut, tf.bool)

    def _translate_nbest(self, text, beam_size=None, **options):
        search = self._settings["search"]
        beams = int(search["beam_size"] if beam_size is None else beam_size)
        options = {name: np.array(value)[()] for name, value in options.items()}
        found = self._translator.translate_nbest(
            to_list(text), beams, beam_size=beams, **options
        )
        missing = [("", 0.0, False)] * beams
        padded = [(row + missing)[:beams] for row in found]
        outputs = {
            name: tf.stack([as_outputs(row)[name] for row in padded])
            for name in ("translation", "score", "truncated")
        }
        counts = np.array([[len(row)] for row in found])
        return {**outputs, "valid": tf.constant(np.arange(beams) < counts)}

    def _sample(self, text, seed, **options):
        keys = ("temperature", "top_k", "top_p")
        rows = zip(
            to_list(text),
            np.array(seed),
            *(np.array(options[k]) for k in keys),
            strict=True,
        )
        return as_outputs(
            [
                self._translator.sample(
                    [line], [int(seed) % 2**32], **dict(zip(keys, values, strict=True))
                )[0]
                for line, seed, *values in rows
            ]
        )

    def _align(self, source, target):
        found = self._translator.align(to_list(source), to_list(target))
        attention = pad([each.attention for each in found], np.float32)
        lengths = np.array([[len(each.target_tokens)] for each in found])
        is_real = np.arange(attention.shape[1]) < lengths
        places = np.where(is_real, attention.argmax(axis=2), -1)
        return {
            "attention": tf.constant(attention),
            "alignment": tf.constant(places, tf.int32),
            "source_tokens": pad_pieces([each.source_tokens for each in found]),
            "target_tokens": pad_pieces([each.target_tokens for each in found]),
            "truncated": tf.constant([each.truncated for each in found]),
        }

    def _score(self, source, target):
        found = self._translator.align(to_list(source), to_list(target))
        return {
            "log_probability": tf.constant(
                [each.log_probabilities.sum() for each in found], tf.float32
            ),
            "score": tf.constant([each.score for each in found], tf.float32),
            "token_log_probabilities": tf.constant(
                pad([each.log_probabilities for each in found], np.float32)
            ),
            "tokens": pad_pieces([each.target_tokens for each in found]),
            "truncated": tf.constant([each.truncated for each in found]),
        }


def to_list(text) -> list[bytes]:
    return np.array(tf.convert_to_tensor(text, tf.string)).tolist()


def as_outputs(translations: list) -> dict[str, tf.Tensor]:
    """Returns the outputs of the default signature for translations."""
    columns = [*zip(*translations, strict=True)] or [()] * 3
    texts, scores, truncated = columns
    return {
        "translation": tf.constant(texts, tf.string),
        "score": tf.constant(scores, tf.float32),
        "truncated": tf.constant(truncated, tf.bool),
    }


def pad(arrays: list[np.ndarray], dtype) -> np.ndarray:
    """Stacks arrays of unlike shapes, with zeros at their ends."""
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = np.zeros((len(arrays), *shape), dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return padded


def pad_pieces(rows: list[list[str]]) -> tf.Tensor:
    return tf.ragged.constant(rows, tf.string).to_tensor("")
