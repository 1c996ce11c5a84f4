"""Holds out some pairs of a corpus as its validation set."""

import hashlib
import heapq
import pathlib
from collections.abc import Iterable, Iterator

from command_line.errors import UserError
from train.data.corpus import Corpus, CorpusWrapper, Pairs, digest_of
from train.data.encoded_corpus import cache_key, read_or_make

# By default a 20th of the pairs, but no more than these.
VALIDATION_SHARE = 20
MAX_VALIDATION_SIZE = 2_000


class WithoutSources(CorpusWrapper):
    """A corpus without the pairs whose sources are those of others.

    Args:
        corpus: The corpus.
        others: The pairs that are held out.
        count: Int, pairs of `corpus` that are left out.
    """

    def __init__(self, corpus: Corpus, others: Pairs, count: int):
        super().__init__(corpus)
        self._others = others
        self._sources = frozenset(others.sources)
        self._count = count

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (pair for pair in self._corpus if pair[0] not in self._sources)

    def __len__(self) -> int:
        return len(self._corpus) - self._count

    def digest(self) -> str:
        return digest_of(f"{self._corpus.digest()} without {self._others.digest()}")


def hold_out(
    corpus: Corpus, size: int | None, seed: int, cache: pathlib.Path
) -> tuple[WithoutSources, Pairs]:
    """Divides a corpus into training and validation pairs.

    The sources with the smallest hashes are held out, each with its first
    translation; their other pairs are in neither part. So no source is in both,
    and the sources depend only on the text and the seed, not on its order.

    Args:
        corpus: Pairs; they are read twice unless the cache has the result.
        size: Int, number of the validation pairs, or `None` for a 20th of the
            pairs, at most 2,000.
        seed: Int, which the hashes depend on.
        cache: Folder for the validation pairs.

    Raises:
        UserError: If there are too few sources.
    """
    if size is None:
        size = min(MAX_VALIDATION_SIZE, max(1, len(corpus) // VALIDATION_SHARE))
    key = cache_key("held out", corpus.digest(), size, seed)

    def divide():
        chosen = choose_pairs(corpus, size, seed)
        return [*chosen.items()], sum(source in chosen for source, _ in corpus)

    pairs, count = read_or_make(cache / f"{key}.held_out", divide)
    if len(pairs) < size or count == len(corpus):
        raise UserError(
            "--validation-size must leave sources to train on. Received: "
            f"{size:,} of {len(corpus):,} pairs"
        )
    held_out = Pairs(*(list(side) for side in zip(*pairs, strict=True)))
    return WithoutSources(corpus, held_out, count), held_out


def choose_pairs(
    pairs: Iterable[tuple[str, str]], size: int, seed: int
) -> dict[str, str]:
    """Returns the sources with the smallest hashes, with their first targets.

    Pairs with an empty side are left out. The order is that of `pairs`, of which
    no more than `size` are in memory.
    """
    chosen, largest_first = {}, []
    for source, target in pairs:
        if source in chosen or not (source.strip() and target.strip()):
            continue
        chosen[source] = target
        text = f"{seed} {source}".encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        entry = -int.from_bytes(digest), source
        if len(largest_first) < size:
            heapq.heappush(largest_first, entry)
        else:
            del chosen[heapq.heappushpop(largest_first, entry)[1]]
    return chosen
