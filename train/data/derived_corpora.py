"""Corpora made from others: reversed, with placeholders, with language tags."""

import fractions
from collections.abc import Iterator

from text_processing.language_tags import LanguageTags
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


class InLanguages(CorpusWrapper):
    """A corpus of two languages that its files do not name."""

    def __init__(self, corpus: Corpus, languages: tuple[str, str]):
        super().__init__(corpus)
        self._languages = languages

    def languages(self) -> tuple[str, str]:
        return self._languages


class Tagged(CorpusWrapper):
    """A corpus whose sources begin with the tag of the target's language.

    `<2de> A dog.` is to be translated into German (Johnson et al. 2017). A source
    without text stays so, and its pair is dropped.
    """

    def __init__(self, corpus: Corpus):
        super().__init__(corpus)
        self.tag = f"<2{corpus.languages()[1]}>"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for source, target in self._corpus:
            yield f"{self.tag} {source}" if source.strip() else source, target

    def digest(self) -> str:
        return digest_of(f"{self.tag} {self._corpus.digest()}")

    def symbols(self) -> list[str]:
        # The blank that precedes a text is part of the subword.
        return [*self._corpus.symbols(), f" {self.tag}"]


def find_tags(corpus: Corpus) -> LanguageTags | None:
    """Returns the tags that the sources of a corpus begin with, if any."""
    parts = [part for part, _ in corpus.parts() if isinstance(part, Tagged)]
    tags = {part.languages()[1]: f"▁{part.tag}" for part in parts}
    return LanguageTags({}, tags) if tags else None


def with_temperature(
    parts: list[tuple[Corpus, fractions.Fraction]], temperature: float
) -> list[tuple[Corpus, fractions.Fraction]]:
    """Returns corpora with weights by which small ones occur more often.

    The share of a corpus of `n` pairs is proportional to `w n^(1 / temperature)`,
    where `w` is its weight before (Arivazhagan et al. 2019). A pass has as many
    pairs as before.
    """
    factors = [max(1, len(corpus)) ** (1 / temperature - 1) for corpus, _ in parts]
    before = sum(weight * len(corpus) for corpus, weight in parts)
    after = sum(
        float(weight) * len(corpus) * factor
        for (corpus, weight), factor in zip(parts, factors, strict=True)
    )
    # Few digits, since the last ones may differ between machines.
    return [
        (corpus, weight * fractions.Fraction(f"{factor * float(before) / after:.6g}"))
        for (corpus, weight), factor in zip(parts, factors, strict=True)
    ]
