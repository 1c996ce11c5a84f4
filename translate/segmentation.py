"""Splits texts into sentences, and joins their translations again."""

import functools
import itertools
import re
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from export.model.sentence_splitting import MAX_REPETITIONS, split_long, split_text

MAX_SENTENCE_BYTES = 2**30  # No sentence is split for its length.


class SplitText(NamedTuple):
    """A text that is split into sentences."""

    parts: list[str]  # Their concatenation is the text.
    places: list[int]  # Indices of the parts that are sentences.

    @property
    def sentences(self) -> list[str]:
        return [self.parts[place] for place in self.places]

    def filled(self, translations: list[str]) -> str:
        """Returns the text with its sentences replaced by translations."""
        parts = list(self.parts)
        for place, text in zip(self.places, translations, strict=True):
            parts[place] = text
        return "".join(parts)


def split_texts(texts: list[str], language: str, max_bytes: int) -> list[SplitText]:
    """Splits texts into sentences and the text between; see `split_text`.

    Args:
        texts: Texts to split.
        language: Code, such as `"en"` or `"pt-BR"`.
        max_bytes: Int, at least 50. Longer sentences are split; see `split_long`.
    """
    split = make_sentence_splitter(re.split("[-_]", language)[0])
    parts, is_sentence = split(tf.constant(texts, tf.string), tf.constant(max_bytes))
    # Rows of ragged tensors would take most of the time of a document.
    flat, flags = parts.values.numpy(), is_sentence.values.numpy()
    return [
        SplitText(
            [part.decode() for part in flat[start:end]],
            flags[start:end].nonzero()[0].tolist(),
        )
        for start, end in itertools.pairwise(parts.row_splits.numpy())
    ]


def find_sentences(
    texts: list[str], language: str, max_bytes: int = MAX_SENTENCE_BYTES
) -> list[list[tuple[int, int]]]:
    """Returns the spans of the sentences of each text; see `split_texts`."""
    if not texts:
        return []
    spans = []
    for parts, places in split_texts(texts, language, max_bytes):
        ends = list(itertools.accumulate(map(len, parts), initial=0))
        spans.append([(ends[place], ends[place + 1]) for place in places])
    return spans


@functools.cache
def make_sentence_splitter(language: str) -> Callable:
    """Returns `split_text` of a language as a graph, which is faster.

    It is a concrete function: a `tf.function` converts its inputs under a lock,
    which it keeps if one is invalid.
    """

    def split(text, max_bytes):
        return split_long(
            *split_text(text, language),
            MAX_REPETITIONS,
            lambda sentences: tf.strings.length(sentences) > max_bytes,
        )

    return tf.function(
        split,
        input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int32)],
        autograph=False,
    ).get_concrete_function()
