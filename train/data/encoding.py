"""Encodes text to ids in parallel, block by block and in order."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import itertools
import pathlib
from collections.abc import Iterator

import numpy as np
import sentencepiece

from command_line.cpu_count import count_processors
from command_line.progress import show_progress
from keras_transformer.special_ids import UNKNOWN_ID
from text_processing.preprocessing_signs import SIGNS
from train.data.corpus import SIDES, Corpus
from train.data.encoded_pairs import Ids

BLOCK = 2_000  # Pairs of a block.
# Approximate number of pairs of a corpus that are decoded again.
ROUND_TRIPS = 10_000


def write_blocks(
    folder: pathlib.Path, corpus: Corpus, encoder: "PairEncoder"
) -> tuple[dict, dict]:
    """Encodes blocks on all cores, and writes them in order.

    Returns:
        The statistics, and each file's dtype and number of elements.
    """
    figures = {}
    with contextlib.ExitStack() as stack:
        files = ArrayFiles(folder, stack)
        offsets = {}
        print(f"encoding {len(corpus):,} pairs")
        blocks = encode_blocks(encoder, corpus)
        for block in show_progress(blocks, -(-len(corpus) // BLOCK), "block"):
            parts = [figures, block.figures] if figures else [block.figures]
            figures = merge_statistics(parts)
            files.write("hashes", block.hashes)
            for name, ids in block.sequences.items():
                if name not in offsets:
                    files.write(f"{name}.offsets", np.zeros(1, "<i8"))
                files.write(f"{name}.ids", ids.flat)
                start = offsets.get(name, 0)
                files.write(f"{name}.offsets", (ids.offsets[1:] + start).astype("<i8"))
                offsets[name] = start + ids.flat.size
    return figures, files.contents


class ArrayFiles:
    """Files of growing arrays; `contents` has the dtype and size of each."""

    def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack):
        self._folder = folder
        self._stack = stack
        self._files = {}
        self.contents = {}

    def write(self, name: str, array: np.ndarray) -> None:
        if name not in self._files:
            path = self._folder / name
            self._files[name] = self._stack.enter_context(path.open("wb"))
            self.contents[name] = [array.dtype.str, 0]
        self._files[name].write(np.ascontiguousarray(array).data)
        self.contents[name][1] += array.size


@dataclasses.dataclass(frozen=True)
class EncodedBlock:
    """Some encoded pairs.

    Attributes:
        sequences: `Ids` of the kept `"source"` and `"target"` texts.
        hashes: Uint64 array `(n, 2)`, hashes of these texts.
        figures: Statistics of the block, as JSON.
    """

    sequences: dict[str, Ids]
    hashes: np.ndarray
    figures: dict


class PairEncoder:
    """Turns pairs into an `EncodedBlock`; may be called from several threads.

    Args:
        protos: SentencePiece models of sources and of targets.
        max_length: Int, most tokens of a side.
        num_pairs: Int, pairs of the corpus, which decide how many lines are
            decoded again.
    """

    def __init__(self, protos: tuple[bytes, bytes], max_length: int, num_pairs: int):
        self._processors = [
            sentencepiece.SentencePieceProcessor(model_proto=proto) for proto in protos
        ]
        self.max_length = max_length
        self._check_every = max(1, num_pairs // ROUND_TRIPS)
        self.dtype = smallest_dtype(max(map(len, self._processors)))
        self._are_bytes = [
            np.array([each.is_byte(id_) for id_ in range(len(each))])
            for each in self._processors
        ]

    def __call__(self, first: int, pairs: list[tuple[str, str]]) -> EncodedBlock:
        """Encodes successive pairs; `first` is the number of the first one."""
        texts = [[pair[side] for pair in pairs] for side in (0, 1)]
        encoded = [
            each.encode(lines, add_eos=True, num_threads=1)
            for each, lines in zip(self._processors, texts, strict=True)
        ]
        sides = [concatenate(side, self.dtype) for side in encoded]
        keep, figures = self._select([side.lengths for side in sides])
        sequences = {
            name: side.take(keep) for name, side in zip(SIDES, sides, strict=True)
        }
        some = [i for i in keep if (first + i) % self._check_every == 0]
        figures |= self._describe(sequences, texts, encoded, some)
        figures["source_equals_target"] = sum(texts[0][i] == texts[1][i] for i in keep)
        hashes = [hash_lines([lines[i] for i in keep]) for lines in texts]
        return EncodedBlock(sequences, np.stack(hashes, axis=1), figures)

    def _select(self, lengths: list[np.ndarray]) -> tuple[np.ndarray, dict]:
        """Returns the indices of the pairs to keep, and counts of the others."""
        shorter, longer = np.sort(lengths, axis=0)
        full = shorter > 1  # A text of blanks has only EOS.
        kept = full & (longer <= self.max_length)
        figures = {
            "pairs": len(full),
            "empty": int((~full).sum()),
            "too_long": int((full & ~kept).sum()),
            "longest": int(longer.max(initial=0)),
            "kept": int(kept.sum()),
        }
        return np.flatnonzero(kept), figures

    def _describe(
        self,
        sequences: dict[str, Ids],
        texts: list[list[str]],
        encoded: list[list[list[int]]],
        some: list[int],
    ) -> dict:
        """Counts the tokens of kept pairs, and checks the text of `some` of them."""
        figures = dict.fromkeys(("unknown_tokens", "byte_tokens"), 0)
        figures["round_trips"] = len(SIDES) * len(some)
        changed = []
        for name, processor, is_byte, lines, side in zip(
            SIDES, self._processors, self._are_bytes, texts, encoded, strict=True
        ):
            ids = sequences[name]
            figures[f"{name}_tokens"] = ids.flat.size
            figures["unknown_tokens"] += int((ids.flat == UNKNOWN_ID).sum())
            figures["byte_tokens"] += int(is_byte[ids.flat].sum())
            lengths = np.bincount(ids.lengths, minlength=self.max_length + 1)
            figures[f"{name}_lengths"] = lengths.tolist()
            decoded = processor.decode([side[i] for i in some])
            checked = [" ".join(lines[i].split()) for i in some]
            both = zip(checked, decoded, strict=True)
            changed += [list(pair) for pair in both if pair[0] != pair[1]]
            for key, sign in SIGNS.items():
                figures[f"{name}_{key}"] = sum(map(sign.is_in, checked))
        figures["round_trip_failures"] = len(changed)
        figures["round_trip_example"] = next(iter(changed), None)
        return figures


def merge_statistics(parts: list[dict]) -> dict:
    """Merges the statistics of several blocks or corpora, as JSON."""
    total = dict(parts[0])
    for part in parts[1:]:
        for name, value in part.items():
            if name == "longest":
                total[name] = max(total[name], value)
            elif name == "round_trip_example":
                total[name] = total[name] or value
            else:
                total[name] = np.add(total[name], value).tolist()
    return total


def hash_lines(lines: list[str]) -> np.ndarray:
    """Returns a 64-bit hash of each line, the same on every machine."""
    digests = [hashlib.blake2b(line.encode(), digest_size=8).digest() for line in lines]
    return np.frombuffer(b"".join(digests), "<u8")


def hash_pairs(hashes: np.ndarray) -> np.ndarray:
    """Returns one hash for each row of `(n, 2)` hashes of both sides."""
    mixed = hashes[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    mixed += hashes[:, 1]  # In place: there may be tens of millions.
    return mixed


def concatenate(sequences: list, dtype: np.dtype) -> Ids:
    lengths = np.array([len(ids) for ids in sequences], np.int64)
    flat = np.fromiter(
        itertools.chain.from_iterable(sequences), dtype, count=lengths.sum()
    )
    return Ids(flat, np.concatenate([[0], np.cumsum(lengths)]))


def smallest_dtype(vocabulary_size: int) -> np.dtype:
    return np.dtype("<u2" if vocabulary_size <= 1 << 16 else "<u4")


def encode_blocks(encoder: PairEncoder, corpus: Corpus) -> Iterator[EncodedBlock]:
    """Yields the blocks of a corpus in order, and encodes some in advance."""
    pairs, first = iter(corpus), 0
    # SentencePiece releases Python's global lock while it encodes.
    workers = count_processors()
    waiting = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for block in iter(lambda: list(itertools.islice(pairs, BLOCK)), []):
            waiting.append(pool.submit(encoder, first, block))
            first += len(block)
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
