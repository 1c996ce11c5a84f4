"""Corpora made from others: in the other direction, or with placeholders."""

from collections.abc import Iterator

from text_processing.placeholders import PLACEHOLDERS, replace_in_pair
from train.data.corpus import Corpus, CorpusWrapper, Mixture, digest_of

PLACEHOLDERS_VERSION = 3  # Of the replacements; the digest depends on it.


class Reversed(CorpusWrapper):
    """A corpus whose sources are the targets of another one."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((target, source) for source, target in self._corpus)

    def digest(self) -> str:
        return digest_of(f"reversed {self._corpus.digest()}")

    def languages(self) -> tuple[str, str]:
        return self._corpus.languages()[::-1]


def in_both_directions(corpus: Corpus) -> Mixture:
    """Returns a corpus, or a mixture of such, with its reversed pairs."""
    parts = corpus.parts()
    return Mixture([*parts, *((Reversed(part), weight) for part, weight in parts)])


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
        return digest_of(f"placeholders {PLACEHOLDERS_VERSION} {self._corpus.digest()}")

    def symbols(self) -> list[str]:
        return [*self._corpus.symbols(), *PLACEHOLDERS]


def with_placeholders(corpus: Corpus) -> Corpus:
    """Returns a corpus, or a mixture of such, with placeholders."""
    if not isinstance(corpus, Mixture):
        return WithPlaceholders(corpus)
    return Mixture([(WithPlaceholders(part), w) for part, w in corpus.parts()])
