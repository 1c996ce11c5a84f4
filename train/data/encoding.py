"""Encodes text to ids in parallel, block by block and in order."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import pathlib
import time
from collections.abc import Iterator

import numpy as np
import sentencepiece

from command_line.cpu_count import count_processors
from command_line.progress import show_progress
from train.data.corpus import SIDES, Corpus
from train.data.corpus_statistics import CorpusStatistics, hash_lines
from train.data.encoded_pairs import Ids
from train.data.pair_filters import PairSelector
from train.data.word_links import LinkEncoder

LINKS = "links"  # Name of their files.
BLOCK = 2_000  # Pairs of a block.
# Approximate number of pairs of a corpus that are decoded again.
ROUND_TRIPS = 10_000


def write_blocks(
    folder: pathlib.Path, corpus: Corpus, encoder: "PairEncoder"
) -> tuple[CorpusStatistics, dict]:
    """Encodes blocks on all cores, and writes them in order.

    Returns:
        The statistics, and each file's dtype and number of elements.
    """
    figures = CorpusStatistics(encoder.max_length, encoder.filter_names)
    with contextlib.ExitStack() as stack:
        files = ArrayFiles(folder, stack)
        offsets = {}
        for block in report_speed(encode_blocks(encoder, corpus), len(corpus)):
            figures.add(block.figures)
            files.write("hashes", block.hashes)
            sequences = dict(zip(SIDES, block.sides, strict=True))
            if block.links is not None:
                sequences[LINKS] = block.links
            for name, ids in sequences.items():
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
        sides: `Ids` of the kept sources and targets.
        hashes: Uint64 array `(n, 2)` of their hashes.
        figures: Statistics of the block.
        links: The links of each of these pairs, if they are known.
    """

    sides: list[Ids]
    hashes: np.ndarray
    figures: CorpusStatistics
    links: Ids | None = None


class PairEncoder:
    """Turns pairs into an `EncodedBlock`; may be called from several threads.

    Args:
        protos: SentencePiece models of sources and of targets.
        max_length: Int, most tokens of a side.
        num_pairs: Int, pairs of the corpus, which decide how many lines are
            decoded again.
        selector: Finds other pairs to drop than empty and too long ones, or
            `None`.
    """

    def __init__(
        self,
        protos: tuple[bytes, bytes],
        max_length: int,
        num_pairs: int,
        selector: PairSelector | None = None,
    ):
        self._processors = [
            sentencepiece.SentencePieceProcessor(model_proto=proto) for proto in protos
        ]
        self.max_length = max_length
        self._selector = selector
        self._link_encoder = LinkEncoder(self._processors)
        self.filter_names = selector.names if selector else ()
        self._check_every = max(1, num_pairs // ROUND_TRIPS)
        size = max(each.get_piece_size() for each in self._processors)
        self.dtype = smallest_dtype(size)
        self._are_bytes = [
            np.array([each.is_byte(id_) for id_ in range(each.get_piece_size())])
            for each in self._processors
        ]

    def __call__(
        self,
        block: list[tuple[int, tuple[str, str]]],
        links: list[np.ndarray] | None = None,
    ) -> EncodedBlock:
        """Encodes pairs, each with its number in the corpus.

        Args:
            block: The numbers and the pairs.
            links: The links between their words, if they are known.
        """
        figures = CorpusStatistics(self.max_length, self.filter_names)
        figures.counts["pairs"] = len(block)
        texts = [[pair[side] for _, pair in block] for side in (0, 1)]
        sequences = [
            each.encode(lines, add_eos=True, num_threads=1)
            for each, lines in zip(self._processors, texts, strict=True)
        ]
        sides = [concatenate(side, self.dtype) for side in sequences]
        shorter, longer = np.sort([side.lengths for side in sides], axis=0)
        # A text of blanks has only EOS.
        full = shorter > 1
        figures.counts["empty"] = len(block) - int(full.sum())
        figures.longest = int(longer.max(initial=0))
        kept = full & (longer <= self.max_length)
        figures.counts["too_long"] = int(full.sum() - kept.sum())
        if self._selector:
            lengths = [side.lengths for side in sides]
            found = self._selector.find_dropped(block[0][0], texts, lengths)
            for name, dropped in found:
                figures.counts[name] = int((kept & dropped).sum())
                kept &= ~dropped
        keep = np.flatnonzero(kept)
        figures.counts["kept"] = len(keep)
        sides = [side.take(keep) for side in sides]
        figures.count_ids(sides, self._are_bytes)
        figures.counts["source_equals_target"] = sum(
            texts[0][i] == texts[1][i] for i in keep
        )
        for processor, lines, ids in zip(
            self._processors, texts, sequences, strict=True
        ):
            some = [i for i in keep if block[i][0] % self._check_every == 0]
            figures.count_round_trips(
                processor, [lines[i] for i in some], [ids[i] for i in some]
            )
        hashes = [hash_lines([lines[i] for i in keep]) for lines in texts]
        encoded_links = None
        if links is not None:
            of_pairs = [
                self._link_encoder(links[i], block[i][1], [ids[i] for ids in sequences])
                for i in keep
            ]
            encoded_links = concatenate(of_pairs, np.dtype("<u4"))
        return EncodedBlock(sides, np.stack(hashes, axis=1), figures, encoded_links)


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
    pairs, links = enumerate(corpus), corpus.links()
    # SentencePiece releases Python's global lock while it encodes.
    workers = count_processors()
    waiting = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for block in iter(lambda: list(itertools.islice(pairs, BLOCK)), []):
            of_block = links and list(itertools.islice(links, len(block)))
            waiting.append(pool.submit(encoder, block, of_block))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def report_speed(blocks: Iterator[EncodedBlock], total: int) -> Iterator[EncodedBlock]:
    """Yields the blocks, with a line before and after them."""
    print(f"encoding {total:,} pairs")
    started = time.monotonic()
    done = tokens = 0
    for block in show_progress(blocks, -(-total // BLOCK), "block"):
        yield block
        counts = block.figures.counts
        done += counts["pairs"]
        tokens += counts["source_tokens"] + counts["target_tokens"]
    seconds = time.monotonic() - started
    print(f"encoded {done:,} pairs, {tokens:,} tokens, in {seconds:.1f} seconds")
