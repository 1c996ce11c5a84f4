"""Measures the latency of a server's first requests.

    TF_ENABLE_ONEDNN_OPTS=1 python -m benchmarks.decoding.first_requests \\
        --export-dir exports/mine --source test.en

The command loads a SavedModel into a Session and sends its warm-up requests, as
TF Serving does. Then it translates sentences, one in each request and none
twice.
"""

import argparse
import pathlib
import random
import time

import numpy as np

from benchmarks.decoding.report import PERCENTILES
from command_line.errors import UserError, exit_on_user_error
from export.bundle.file_layout import SAVED_MODEL, WARMUP
from export.bundle.model_loading import SIGNATURE
from export.bundle.predict_messages import read_tensors
from export.bundle.versions import find_version
from export.bundle.warmup_requests import read_warmup
from export.check import SessionModel

GROUP_NAMES = ("first", "next", "later")
NEIGHBOURS = 15  # Requests of similar length, whose median is the usual time.


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decoding.first_requests",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("--export-dir", type=pathlib.Path, required=True)
    add("--source", type=pathlib.Path, required=True, help="sentences")
    add("--sentences", type=int, default=40, help="of each of three groups")
    add("--cold", action="store_true", help="play no warm-up requests")
    return parser.parse_args(argv)


def split_into_groups(lines: list[bytes], count: int) -> list[list[bytes]]:
    """Splits different lines into groups of similar lengths.

    Args:
        lines: Sentences.
        count: Int, lines of a group.
    """
    lines = sorted({line for line in lines if line.strip()})
    wanted = len(GROUP_NAMES) * count
    if not 0 < wanted <= len(lines):
        raise UserError(
            "--sentences must be at least 1, and --source have "
            f"{len(GROUP_NAMES)} times as many different lines. "
            f"Received: {count}, and {len(lines)} lines"
        )
    generator = random.Random(0)
    chosen = sorted(generator.sample(lines, wanted), key=len)
    of_like_length = [
        generator.sample(chosen[start : start + len(GROUP_NAMES)], len(GROUP_NAMES))
        for start in range(0, wanted, len(GROUP_NAMES))
    ]
    return [
        generator.sample(group, count) for group in zip(*of_like_length, strict=True)
    ]


def translate_all(
    model: SessionModel, texts: list[bytes]
) -> tuple[np.ndarray, list[bytes]]:
    """Returns the seconds of each request, and the translations."""
    seconds, translations = [], []
    for text in texts:
        started = time.perf_counter()
        outputs = model.run(SIGNATURE, {"text": [text]})
        seconds.append(time.perf_counter() - started)
        translations.append(outputs["translation"][0])
    return np.array(seconds), translations


def count_tokens(model: SessionModel, text: bytes) -> int:
    scored = model.run("score", {"source": [text], "target": [text]})
    return int(np.sum(scored["tokens"] != b""))


def relative_latencies(lengths: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Returns the ratio of each latency to the median at its length.

    The median is that of the `NEIGHBOURS` requests nearest in length.
    """
    ratios = []
    for length, taken in zip(lengths, seconds, strict=True):
        distances = np.abs(lengths - length)
        nearest = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        ratios.append(taken / np.median(seconds[nearest]))
    return np.array(ratios)


def print_groups(seconds: np.ndarray) -> None:
    """Prints a row for each group, and compares the first with the last."""
    names = " | ".join(f"p{percentile}" for percentile in PERCENTILES)
    print(f"\n| sentences | mean ms | {names} |\n|---|---|---|---|---|")
    for name, group in zip(GROUP_NAMES, seconds, strict=True):
        numbers = [group.mean(), *np.percentile(group, PERCENTILES)]
        cells = " | ".join(f"{1e3 * number:,.1f}" for number in numbers)
        print(f"| {name} {len(group)} | {cells} |")
    ratio = seconds[0].mean() / seconds[-1].mean()
    print(f"\nThe first take {ratio:.2f} × the time of later ones.")


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    groups = split_into_groups(args.source.read_bytes().splitlines(), args.sentences)
    folder = find_version(args.export_dir, SAVED_MODEL)
    texts = [text for group in groups for text in group]

    started = time.perf_counter()
    model = SessionModel(folder)
    loaded = time.perf_counter()
    requests = [] if args.cold else list(read_warmup(folder / WARMUP))
    for request in requests:
        name = request.model_spec.signature_name
        model.run(name, read_tensors(request.inputs))
    warm = time.perf_counter()
    seconds, translations = translate_all(model, texts)

    first_answer = warm - started + seconds[0]
    print(
        f"First answer after {first_answer:.1f} s: {loaded - started:.1f} to "
        f"load, {warm - loaded:.1f} for {len(requests)} warm-up requests, "
        f"{seconds[0]:.3f} to answer."
    )
    print_groups(seconds.reshape(len(GROUP_NAMES), -1))
    lengths = np.array([count_tokens(model, text) for text in translations])
    ratios = relative_latencies(lengths, seconds)
    print(
        f"{np.sum(ratios > 2)} of {len(ratios)} requests take more than twice "
        f"the median of the {NEIGHBOURS} whose translations are nearest in "
        f"tokens; the most that one takes is {ratios.max():.1f} ×."
    )


if __name__ == "__main__":
    with exit_on_user_error():
        main()
