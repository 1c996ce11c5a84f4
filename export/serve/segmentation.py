"""Splits texts into sentences, and joins their translations again."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from export.model.sentence_splitting import split_text


class Document(NamedTuple):
    """A text that is split into sentences.

    Attributes:
        parts: Strings; their concatenation is the text.
        places: Ints, indices of the parts that are sentences.
    """

    parts: list[str]
    places: list[int]

    @property
    def sentences(self) -> list[str]:
        return [self.parts[place] for place in self.places]

    def filled(self, translations: list[str]) -> str:
        """Returns the text with its sentences replaced by translations."""
        parts = list(self.parts)
        for place, text in zip(self.places, translations, strict=True):
            parts[place] = text
        return "".join(parts)


def split_texts(texts: list[str], language: str) -> list[Document]:
    """Splits texts into sentences and the text between; see `split_text`.

    Args:
        texts: Texts to split.
        language: Code, such as `"en"` or `"pt-BR"`.
    """
    parts, is_sentence = make_sentence_splitter(language.split("-")[0])(texts)
    return [
        Document(
            [part.decode() for part in parts[row].numpy()],
            is_sentence[row].numpy().nonzero()[0].tolist(),
        )
        for row in range(len(texts))
    ]


@functools.cache
def make_sentence_splitter(language: str) -> Callable:
    """Returns `split_text` of a language as a graph, which is faster."""
    return tf.function(
        lambda text: split_text(text, language),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
