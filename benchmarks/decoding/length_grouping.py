"""Measures the cost of batches whose lines differ in length.

    python -m benchmarks.decoding.length_grouping --run-dir runs/mine \\
        --export-dir exports/mine --input train.en

`export.translate` sorts lines by their bytes and cuts them into batches. Each
batch of the first window is translated in turn with as many other lines of the
file, all of which have as many pieces as the batch has in the mean.
"""

import argparse
import collections
import pathlib
import random
import statistics
import time
from collections.abc import Callable

import sentencepiece

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from export.line_batching import WINDOW
from export.line_batching import cut_batches
from export.version_loading import load_translate

BATCH_TOKENS = 1024  # The default of `export.translate`.


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding.length_grouping",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--run-dir", type=pathlib.Path, required=True)
    add("--export-dir", type=pathlib.Path, required=True)
    add("--input", type=pathlib.Path, required=True, help="sentences")
    add("--repetitions", type=int, default=3)
    return parser.parse_args(argv)


def pair_with_equal_lengths(
    lines: list[bytes], count_pieces: Callable
) -> list[tuple[list[bytes], list[bytes]]]:
    """Returns batches as they are cut, each with one of equal lengths.

    A batch is left out where the file has too few lines of its mean length.
    """
    others = collections.defaultdict(list)
    for line in lines[WINDOW:]:
        others[count_pieces(line)].append(line)
    pairs = []
    for places in cut_batches(lines[:WINDOW], BATCH_TOKENS):
        mixed = [lines[place] for place in places]
        equal = others[round(statistics.mean(map(count_pieces, mixed)))]
        if len(equal) >= len(mixed):
            pairs.append((mixed, equal[: len(mixed)]))
    if not pairs:
        raise UserError(
            f"--input must have many more than {WINDOW:,} lines. "
            f"Received: {len(lines):,}"
        )
    return pairs


def measure(
    translate: Callable, pairs: list, count_pieces: Callable
) -> list[float]:
    """Returns the target pieces a second of either side of `pairs`."""
    seconds, pieces = [0.0, 0.0], [0, 0]
    for pair in random.sample(pairs, len(pairs)):
        for side, texts in enumerate(pair):
            started = time.perf_counter()
            translations = translate(texts)["translation"].numpy()
            seconds[side] += time.perf_counter() - started
            pieces[side] += sum(map(count_pieces, translations))
    return [p / s for p, s in zip(pieces, seconds, strict=True)]


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(args.run_dir / "tokenizer.model")
    )

    def count_pieces(line: bytes) -> int:
        return len(tokenizer.encode(line.decode())) + 1

    translate = load_translate(args.export_dir)
    pairs = pair_with_equal_lengths(
        args.input.read_bytes().splitlines(), count_pieces
    )
    measure(translate, pairs[:3], count_pieces)
    speeds = [
        measure(translate, pairs, count_pieces) for _ in range(args.repetitions)
    ]
    mixed, equal = map(statistics.median, zip(*speeds, strict=True))
    ratio = statistics.median(mixed / equal for mixed, equal in speeds)
    print(
        f"{len(pairs)} batches, {sum(len(pair[0]) for pair in pairs):,} "
        f"sentences. Target pieces a second: {mixed:,.0f} as cut, {equal:,.0f} "
        f"of equal lengths; the median of the ratios is {ratio:.3f}"
    )


if __name__ == "__main__":
    with exit_on_user_error():
        main()
