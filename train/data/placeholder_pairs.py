"""Replaces text that both sides of a pair share by placeholders."""

import hashlib
from collections.abc import Iterator

from text_processing.placeholders import PLACEHOLDERS, replace_in_pair
from train.data.corpus import Corpus, CorpusWrapper, Mixture

# Version of the replacements; it is part of the corpus's digest.
VERSION = 2


class WithPlaceholders(CorpusWrapper):
    """A corpus whose addresses, variables and quantities are placeholders.

    See `replace_in_pair`. Every other pair stays as it is, so that a model
    learns from both forms.
    """

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (
            pair if number % 2 else replace_in_pair(*pair)
            for number, pair in enumerate(self._corpus)
        )

    def digest(self) -> str:
        text = f"placeholders {VERSION} {self._corpus.digest()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def links(self) -> None:
        return None  # The words are other ones.

    def symbols(self) -> list[str]:
        return [*self._corpus.symbols(), *PLACEHOLDERS]


def with_placeholders(corpus: Corpus) -> Corpus:
    """Returns a corpus, or a mixture of such, with placeholders."""
    parts = corpus.parts()
    if len(parts) == 1 and parts[0][0] is corpus:
        return WithPlaceholders(corpus)
    return Mixture([(WithPlaceholders(part), w) for part, w in parts])
