"""Sentences and their trees, as pairs to train on (Section 6.3)."""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterator

from text_processing.treebanks import read_trees
from text_processing.trees import LEAF
from train.data.corpus import Corpus, refuse_pipe


@dataclasses.dataclass(frozen=True)
class TreePairs(Corpus):
    """A treebank: pairs of a sentence and its linearized tree.

    Attributes:
        path: Path of bracketed trees, plain or gzip, UTF-8.

    Raises:
        UserError: At the first use, if the file is not a treebank.
    """

    path: pathlib.Path

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for tree in read_trees(self.path):
            yield " ".join(tree.words), tree.linearize()

    def __len__(self) -> int:
        return self._scan[0]

    def digest(self) -> str:
        return self._scan[1]

    def symbols(self) -> list[str]:
        """Returns the brackets and tags of the targets."""
        found = set()
        for tree in read_trees(self.path):
            found.update(f" {s}" for s in tree.symbols if s != LEAF)
            found.update(f"/{tag}" for tag in tree.tags)
        return sorted(found)

    @functools.cached_property
    def _scan(self) -> tuple[int, str]:
        refuse_pipe(self.path)
        digest = hashlib.sha256(b"trees")
        count = 0
        for source, target in self:
            digest.update(f"{source}\n{target}\n".encode())
            count += 1
        return count, digest.hexdigest()
