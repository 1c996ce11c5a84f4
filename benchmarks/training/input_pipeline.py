"""Times the input pipeline alone, in a process of its own.

Writes a line of JSON: real tokens of both sides a second, one value a
repetition, of the batches that one thread makes and of the dataset that
`fit` reads.
"""

import argparse
import json
import time

import numpy as np
import tensorflow as tf

from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.encoded_pairs import EncodedPairs, Ids

LONGEST = 100


def make_pairs(count: int) -> EncodedPairs:
    """Makes pairs of random ids whose lengths are like those of sentences."""
    random = np.random.default_rng(0)
    # The sides of a pair are about equally long: 27 tokens in the mean.
    mean = random.gamma(3.0, 9.0, count)
    return EncodedPairs(*[make_side(random, mean) for _ in range(2)])


def make_side(random: np.random.Generator, mean: np.ndarray) -> Ids:
    lengths = random.normal(mean, np.sqrt(mean))
    lengths = np.clip(np.round(lengths), 2, LONGEST).astype(np.int64)
    flat = random.integers(4, 37_000, lengths.sum(), np.int32)
    return Ids(flat, np.concatenate([[0], np.cumsum(lengths)]))


def count_batch_tokens(batch) -> int:
    sources, _, labels = batch
    return int(np.count_nonzero(sources) + np.count_nonzero(labels))


def plan_throughput(plan: BatchPlan, first: int, steps: int) -> float:
    started = time.perf_counter()
    batches = [plan.batch(first + i)[:3] for i in range(steps)]
    elapsed = time.perf_counter() - started
    return sum(map(count_batch_tokens, batches)) / elapsed


def dataset_throughput(plan: BatchPlan, first: int, steps: int) -> float:
    strategy = tf.distribute.get_strategy()
    dataset = make_dataset(plan, strategy, first, first + steps)
    names = ("source_ids", "target_ids", "labels")
    started = time.perf_counter()
    batches = [[batch[name] for name in names] for batch in dataset]
    elapsed = time.perf_counter() - started
    return sum(map(count_batch_tokens, batches)) / elapsed


def measure(pairs: int, batch_tokens: int, repetitions: int) -> dict:
    plan = BatchPlan(make_pairs(pairs), batch_tokens, seed=0)
    steps = plan.batches_per_pass
    plan.batch(0)  # The first batch of a pass draws the order.
    times = {"one_thread": plan_throughput, "dataset": dataset_throughput}
    speeds = {name: [] for name in times}
    for _ in range(repetitions):
        for name, function in times.items():
            speeds[name].append(function(plan, 0, steps))
    return {
        "pairs": pairs,
        "batch_tokens": batch_tokens,
        "steps": steps,
        "fill": plan.fill,
        "tokens_per_second": speeds,
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.input_pipeline"
    )
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--repetitions", type=int)
    args = parser.parse_args(argv)
    print(json.dumps(measure(args.pairs, args.batch_tokens, args.repetitions)))


if __name__ == "__main__":
    main()
