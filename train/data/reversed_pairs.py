"""Adds the pairs of a corpus in the other direction."""

import hashlib
from collections.abc import Iterator

import numpy as np

from train.data.corpus import Corpus, CorpusWrapper, Mixture


class Reversed(CorpusWrapper):
    """A corpus whose sources are the targets of another one."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((target, source) for source, target in self._corpus)

    def digest(self) -> str:
        text = f"reversed {self._corpus.digest()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def languages(self) -> tuple[str, str]:
        source, target = self._corpus.languages()
        return target, source

    def links(self) -> Iterator[np.ndarray] | None:
        links = self._corpus.links()
        return links and (of_pair[:, ::-1] for of_pair in links)


def in_both_directions(corpus: Corpus) -> Mixture:
    """Returns a corpus, or a mixture of such, with its reversed pairs."""
    parts = corpus.parts()
    return Mixture([*parts, *((Reversed(part), weight) for part, weight in parts)])
