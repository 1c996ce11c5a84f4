"""Cache of encoded corpora on disk.

The name of a folder of ids is a digest of everything that the ids depend on:
text, tokenizer, maximum length, format and SentencePiece's version. The folder
is written under a temporary name and renamed when it is complete. Each part of a
mixture has its own folder, whatever its weight.
"""

import contextlib
import dataclasses
import fcntl
import fractions
import functools
import hashlib
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sentencepiece

from command_line.errors import UserError
from command_line.text_files import write_atomically
from train.data import encoding
from train.data.corpus import SIDES, Corpus, CorpusWrapper, digest_of
from train.data.encoded_pairs import EncodedPairs, Ids, JoinedIds
from train.data.encoding import PairEncoder, hash_pairs, merge_statistics, write_blocks

# Version of the files below and of the text that corpora make from their files.
# After a change everything is read and encoded again.
FORMAT = 5


@dataclasses.dataclass(frozen=True)
class Encoded:
    """An encoded corpus, mapped from disk.

    Attributes:
        pairs: The ids of the kept pairs.
        hashes: Uint64 arrays `(n, 2)`, one for each part: hashes of sources and
            targets.
        figures: Dict as JSON: counts of `"pairs"` read and of reasons to drop
            them; of the kept pairs, counts of `"duplicates"` in their part, of
            tokens, of lines that come back changed after encoding and decoding,
            and of those with `SIGNS`; and lists of the numbers of sides
            by their length.
    """

    pairs: EncodedPairs
    hashes: list[np.ndarray]
    figures: dict


class DigestCachedCorpus(CorpusWrapper):
    """A corpus whose length and digest are kept in a cache.

    The corpus is read again if the name, the size or the modification time of
    one of its files has changed, and whenever it has no files.
    """

    def __init__(self, corpus: Corpus, files: list[pathlib.Path], cache: pathlib.Path):
        super().__init__(corpus)
        self._files = files
        self._cache = cache

    def __len__(self) -> int:
        return self._scan[0]

    def digest(self) -> str:
        return self._scan[1]

    @functools.cached_property
    def _scan(self) -> tuple[int, str]:
        if not self._files or not all(path.exists() for path in self._files):
            return len(self._corpus), self._corpus.digest()
        states = [(str(path.resolve()), path.stat()) for path in self._files]
        states = [[name, s.st_size, s.st_mtime_ns] for name, s in states]
        path = self._cache / f"{cache_key(repr(self._corpus), states)}.scan"
        return read_or_make(path, lambda: (len(self._corpus), self._corpus.digest()))


def read_or_make(path: pathlib.Path, make: Callable[[], Any]) -> Any:
    """Returns the JSON of a file, or makes and writes it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        content = make()
        with file_lock(path):
            write_atomically(path, json.dumps(content).encode())
        return content


def encode_corpus(
    corpus: Corpus,
    model_proto: bytes,
    max_length: int,
    cache: pathlib.Path,
    target_proto: bytes | None = None,
) -> Encoded:
    """Encodes a corpus without empty and too long pairs, or reads the cache.

    If several runs encode the same corpus at a time, one of them does so and
    the others wait.

    Args:
        corpus: The corpus.
        model_proto: Serialized SentencePiece model.
        max_length: Int, maximum tokens of a side, EOS included.
        cache: Folder for encoded corpora.
        target_proto: That of targets, or `None` where both sides share one.

    Raises:
        UserError: If no pair of a part is left.
    """
    protos = model_proto, target_proto or model_proto
    parts, weights = zip(*corpus.parts(), strict=True)
    encoded = [encode_part(cache, part, protos, max_length) for part in parts]
    return join_parts(encoded, weights)


def encode_part(cache: pathlib.Path, *arguments) -> Encoded:
    """Encodes a corpus that has no parts; the arguments are `encoded_key`'s."""
    folder = cache / encoded_key(*arguments)
    encoded = open_encoded(folder)
    if encoded is None:
        with file_lock(folder):
            encoded = open_encoded(folder)
            if encoded is None:
                encode_into(folder, *arguments)
                encoded = open_encoded(folder)
    return encoded


def join_parts(
    parts: list[Encoded], weights: tuple[fractions.Fraction, ...]
) -> Encoded:
    """Joins encoded corpora without copying them."""
    if len(parts) == 1 and weights == (1,):
        return parts[0]
    pairs = EncodedPairs(
        JoinedIds(tuple(part.pairs.sources for part in parts)),
        JoinedIds(tuple(part.pairs.targets for part in parts)),
        tuple(zip((len(part.pairs) for part in parts), weights, strict=True)),
    )
    hashes = [hashes for part in parts for hashes in part.hashes]
    return Encoded(pairs, hashes, merge_statistics([p.figures for p in parts]))


def encoded_key(corpus: Corpus, protos: tuple[bytes, bytes], max_length: int) -> str:
    """Returns a digest of everything that an encoded corpus depends on."""
    return cache_key(
        corpus.digest(),
        [hashlib.sha256(proto).hexdigest() for proto in protos],
        max_length,
        encoding.ROUND_TRIPS,
    )


def cache_key(*parts: str | int | list | dict) -> str:
    """Returns the name of cached files that depend on `parts`."""
    versions = FORMAT, sentencepiece.__version__
    return digest_of(json.dumps([*versions, *parts]))[:24]


@contextlib.contextmanager
def file_lock(path: pathlib.Path) -> Iterator[None]:
    """Locks a file; the lock is released when its process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another run is encoding the same text: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def open_encoded(folder: pathlib.Path) -> Encoded | None:
    """Maps the files of an encoded corpus; `None` if they are incomplete."""
    path = folder / "encoded.json"
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        print(f"{path} is damaged: encoding again")
        return None
    arrays = {}
    for name, (dtype, size) in description["files"].items():
        path = folder / name
        whole = size * np.dtype(dtype).itemsize
        if not path.exists() or not whole or path.stat().st_size != whole:
            print(f"{path} is damaged: encoding again")
            return None
        # A plain view: slices of `np.memmap` itself are slow.
        arrays[name] = np.asarray(np.memmap(path, dtype, mode="r"))
    sides = [Ids(arrays[f"{s}.ids"], arrays[f"{s}.offsets"]) for s in SIDES]
    return Encoded(
        EncodedPairs(*sides), [arrays["hashes"].reshape(-1, 2)], description["figures"]
    )


def encode_into(
    folder: pathlib.Path, corpus: Corpus, protos: tuple[bytes, bytes], max_length: int
) -> None:
    """Writes the files of a corpus to a temporary folder and renames it."""
    part = folder.with_suffix(".part")
    # A killed run may have left the folder.
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        encoder = PairEncoder(protos, max_length, len(corpus))
        figures, files = write_blocks(part, corpus, encoder)
        if not figures or not figures["kept"]:
            raise UserError(
                f"no pair of the corpus has text of 1 to {max_length} tokens "
                f"on both sides (--max-length). Received: {len(corpus)} pairs"
            )
        hashes = np.memmap(part / "hashes", "<u8", mode="r").reshape(-1, 2)
        mixed = hash_pairs(hashes)
        mixed.sort()
        duplicates = int(np.count_nonzero(mixed[1:] == mixed[:-1]))
        description = {"files": files, "figures": {**figures, "duplicates": duplicates}}
        text = json.dumps(description, ensure_ascii=False)
        (part / "encoded.json").write_text(text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # The folder may be damaged.
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
