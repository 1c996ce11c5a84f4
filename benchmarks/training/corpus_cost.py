"""Measures encoding, batching, memory, disk and start-up of a corpus.

    python -m benchmarks.training.corpus_cost --pairs 50000 500000

makes synthetic text (words and lengths follow Zipf's law) in a temporary
folder, prepares it and makes 50 batches, each size in a process of its own, and
again with the ids on disk. The cost of 36 million pairs is extrapolated
linearly from the two sizes. Seconds of one core are CPU seconds.
"""

import argparse
import concurrent.futures
import multiprocessing
import pathlib
import tempfile
import time

import numpy as np

from benchmarks.interleaved_runs import peak_memory
from command_line.markdown import format_table
from train.data.batch_plan import BatchPlan
from train.data.corpus import FilePairs
from train.data.encoded_corpus import DigestCachedCorpus, encode_corpus
from train.data.vocabulary import cached_vocabulary

EXTRAPOLATED_MILLIONS = 36
VOCABULARY_SIZE = 8_000
BATCH_TOKENS = 25_000
WORDS = 30_000
BATCHES = 50
UNITS = {
    "encoding": "million tokens a second of one core",
    "batching": "million real tokens a second of one core",
    "fill": "real tokens over positions",
    "shapes": "shapes of batches",
    "memory": "GB at the peak of preparing and 50 batches",
    "memory_again": "GB at the peak with the ids on disk",
    "disk": "GB of encoded files",
    "vocabulary_seconds": "seconds to learn the vocabulary",
    "encoding_seconds": "seconds to encode, on all cores",
    "start_seconds": "seconds to the first batch with the ids on disk",
    "plan_seconds": "seconds to plan and make batch 0",
    "late_seconds": "seconds to make a batch in mid-epoch, once planned",
}
CACHED = ("start_seconds", "plan_seconds", "late_seconds")
# The peak of preparing is the vocabulary's: it stays from 300,000 pairs on.
GROWING = ("memory_again", "disk", "encoding_seconds", *CACHED)


def write_text(folder: pathlib.Path, count: int) -> None:
    """Writes `count` pairs: words, and the same words spelt backwards.

    Of a hundred words the target lacks six and has ten twice.
    """
    random = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words = np.array(
        ["".join(random.choice(letters, random.integers(2, 11))) for _ in range(WORDS)]
    )
    backwards = np.array([word[::-1] for word in words])
    often = 1 / np.arange(1, WORDS + 1)
    spans = np.arange(8, 81)
    likely = 1 / spans
    with (
        (folder / "source").open("w") as source,
        (folder / "target").open("w") as target,
    ):
        for start in range(0, count, 10_000):
            n = min(10_000, count - start)
            ends = np.cumsum(random.choice(spans, n, p=likely / likely.sum()))
            drawn = random.choice(WORDS, ends[-1], p=often / often.sum())
            copies = random.choice(3, ends[-1], p=[0.06, 0.84, 0.1])
            write_lines(source, words[drawn], ends)
            ends = np.cumsum(copies)[ends - 1]
            write_lines(target, backwards[np.repeat(drawn, copies)], ends)


def write_lines(file, words: np.ndarray, ends: np.ndarray) -> None:
    for line in np.split(words, ends[:-1]):
        file.write(" ".join(line) + "\n")


def measure(folder: pathlib.Path) -> dict[str, float]:
    """Prepares the text of a folder and makes batches; returns figures."""
    times, cpu = [], []

    def stop() -> None:
        times.append(time.monotonic())
        cpu.append(time.process_time())

    stop()
    files = [folder / "source", folder / "target"]
    cache = folder / "cache"
    corpus = DigestCachedCorpus(FilePairs(*files), files, cache)
    proto = cached_vocabulary(corpus, VOCABULARY_SIZE, cache)
    stop()
    encoded = encode_corpus(corpus, proto, 256, cache)
    stop()
    plan = BatchPlan(encoded.pairs, BATCH_TOKENS, seed=0)
    plan.batch(0)
    stop()
    middle = plan.batches_per_pass // 2
    plan.batch(middle)
    stop()
    numbers = [j % plan.batches_per_pass for j in range(middle, middle + BATCHES)]
    for j in numbers:
        plan.batch(j)
    stop()
    batches = [plan.batch(j) for j in numbers]
    tokens = sum((s != 0).sum() + (t != 0).sum() for s, _, t, _ in batches)
    figures = encoded.figures
    encoded_tokens = figures["source_tokens"] + figures["target_tokens"]
    return {
        "vocabulary_seconds": times[1] - times[0],
        "encoding_seconds": times[2] - times[1],
        "encoding": encoded_tokens / (cpu[2] - cpu[1]) / 1e6,
        "start_seconds": times[3] - times[0],
        "plan_seconds": times[3] - times[2],
        "late_seconds": times[4] - times[3],
        "batching": float(tokens / (cpu[5] - cpu[4]) / 1e6),
        "fill": plan.fill,
        "shapes": len(plan.shapes),
        "memory": peak_memory() / 1e9,
        "disk": sum(p.stat().st_size for p in cache.glob("*/*")) / 1e9,
    }


def measure_size(count: int) -> dict[str, float]:
    """Measures a corpus of this size, in two processes."""
    spawned = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as name,
        concurrent.futures.ProcessPoolExecutor(
            1, mp_context=spawned, max_tasks_per_child=1
        ) as pool,
    ):
        folder = pathlib.Path(name)
        write_text(folder, count)
        first, again = pool.map(measure, [folder, folder])
    cached = {name: again[name] for name in CACHED}
    return {**first, **cached, "memory_again": again["memory"]}


def extrapolate(sizes: list[int], results: list[dict]) -> dict[str, float]:
    """Continues the line through the first and last size."""
    figures = {}
    for name in GROWING:
        first, last = results[0][name], results[-1][name]
        slope = (last - first) / (sizes[-1] - sizes[0])
        figures[name] = last + slope * (EXTRAPOLATED_MILLIONS * 1e6 - sizes[-1])
    return figures


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.corpus_cost",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--pairs", type=int, nargs=2, required=True, help="two sizes of corpora")
    sizes = parser.parse_args(argv).pairs
    results = [measure_size(count) for count in sizes]
    columns = [f"{count:,}" for count in sizes]
    columns.append(f"{EXTRAPOLATED_MILLIONS} million (by the slope)")
    results.append(extrapolate(sizes, results))
    rows = [
        [unit, *(f"{found[name]:.3g}" if name in found else None for found in results)]
        for name, unit in UNITS.items()
    ]
    print(format_table(["pairs", *columns], rows))


if __name__ == "__main__":
    main()
