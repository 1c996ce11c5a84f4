"""Formats the tables and the chart of `benchmarks.decoding`."""

import pathlib
import statistics

import numpy as np
from matplotlib import pyplot

from benchmarks.shared.model_sizes import (
    BEAM_SIZE,
    CURVE_BATCH_SIZE,
    CURVE_LENGTH,
    Size,
    count_source_weights,
    count_step_weights,
)

PACKAGE = "package"
OWN_WEIGHTS = "hugging-face"  # All others have the package's.
PERCENTILES = (50, 90, 99)


def make_row(worker, case: str, batches: list[dict]) -> dict:
    """Summarizes the runs of a system on the batches of a case."""
    runs = runs_of(worker, case)
    first, *again = [run["seconds"] for run in runs]
    tokens = sum(batch["tokens"] for batch in batches)
    sentences = len(runs[0]["outputs"])
    return {
        "system": worker.system,
        "batch_size": sentences // len(batches),
        "length": max(batch.get("length", 0) for batch in batches),
        "sentences": sentences,
        "tokens": tokens,
        "first_time": summarize_seconds([first], tokens),
        "again": summarize_seconds(again, tokens),
        "peak_bytes": runs[0]["peak_bytes"],
    }


def runs_of(worker, case: str) -> list[dict]:
    return [run for run in worker.answers if run["case"] == case]


def summarize_seconds(runs: list[list[float]], tokens: int) -> dict:
    """Summarizes the seconds of all batches in several runs."""
    seconds = [sum(times) for times in runs]
    middle = statistics.median(seconds)
    return {
        "all_seconds": runs,
        "seconds": middle,
        "tokens_per_second": tokens / middle,
        "most_tokens_per_second": tokens / min(seconds),
        "least_tokens_per_second": tokens / max(seconds),
        "latencies": np.percentile(runs, PERCENTILES).tolist(),
    }


def compare_translations(workers: list, case: str) -> dict[str, float]:
    """Returns the share of the package's translations that each system finds.

    Greedy search is compared with greedy search. The last id of each sentence
    is ignored: the package ends with EOS, other systems with another token.
    """
    outputs = {
        worker.system: [
            output if isinstance(output, str) else output[:-1]
            for output in runs_of(worker, case)[0]["outputs"]
        ]
        for worker in workers
        if not worker.left_out and worker.system != OWN_WEIGHTS
    }
    shares = {}
    for system, found in outputs.items():
        greedy = "-greedy" if system.endswith("-greedy") else ""
        wanted = outputs.get(PACKAGE + greedy)
        if wanted:
            pairs = zip(found, wanted, strict=True)
            shares[system] = statistics.mean(a == b for a, b in pairs)
    return shares


def find_baseline(system: str) -> str:
    """Returns the package's system with which another system is compared."""
    greedy = system.endswith("-greedy") and not system.startswith(PACKAGE)
    return PACKAGE + "-greedy" if greedy else PACKAGE


def print_table(rows: list[dict], left_out: list[dict]) -> None:
    """Prints a row for each batch size and system, as Markdown."""
    print(
        "\n| model | batch | system | target tokens/s, first time | again "
        "| ms at p50, p90, p99, first time | again | package is | the same "
        "| peak GiB |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for row in rows:
        first, again = row["first_time"], row["again"]
        same = row["same_as_package"]
        rival = find_baseline(row["system"])
        cells = (
            row["model"],
            row["batch_size"],
            row["system"],
            f"{first['tokens_per_second']:,.0f}",
            f"{again['tokens_per_second']:,.0f} "
            f"({again['least_tokens_per_second']:,.0f} to "
            f"{again['most_tokens_per_second']:,.0f})",
            *(
                ", ".join(f"{1e3 * time:,.0f}" for time in part["latencies"])
                if row["batch_size"] == 1
                else ""
                for part in (first, again)
            ),
            speed_ratio(rows, rival, row["system"], row["batch_size"]),
            "" if same is None else f"{same:.0%}",
            f"{row['peak_bytes'] / 2**30:.2f}",
        )
        print("|", " | ".join(map(str, cells)), "|")
    for row in left_out:
        print(f"| {row['model']} | | {row['system']} | {row['reason']} |")


def speed_ratio(rows: list[dict], first: str, second: str, batch_size: int) -> str:
    """Returns how many times as fast the first system is as the second.

    It is empty if one was not measured.
    """
    speeds = {
        row["system"]: row["again"]["tokens_per_second"]
        for row in rows
        if row["batch_size"] == batch_size
    }
    if first not in speeds or second not in speeds:
        return ""
    return f"{speeds[first] / speeds[second]:.2f} ×"


def fit_length(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Fits the seconds of a batch against its length `n`.

    Step `t` costs `a + b t`, so a batch costs about `c + a n + b n² / 2`.
    Deviations count by their share.

    Returns:
        `a`, seconds a step, and `b`, seconds more for each step before it.
    """
    lengths, seconds = np.array(points, float).T
    half, slope, _ = np.polyfit(lengths, seconds, 2, w=1 / seconds)
    return float(slope), float(2 * half)


def fit_batch_size(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Fits the seconds of a step against the number of sentences.

    Returns:
        Seconds a step, and seconds more for each sentence in it.
    """
    sizes, seconds = np.array(points, float).T
    slope, constant = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    return float(constant), float(slope)


def fit_curves(points: list[dict], size: Size) -> list[dict]:
    """Fits both curves of each system.

    Args:
        points: Rows, one for each system and point.
        size: The model.

    Returns:
        A dict for each system: seconds, the bytes of the weights that a step
        reads, and the operations with weights for a token of a sentence, of
        source and target.
    """
    weights = count_step_weights(size)
    fits = []
    for system in dict.fromkeys(row["system"] for row in points):
        of_system = [row for row in points if row["system"] == system]
        by_length = length_curve(of_system)
        by_size = batch_size_curve(of_system)
        fit = {"system": system}
        if len(by_length) > 2:
            fit["step"], fit["position"] = fit_length(by_length)
        if len(by_size) > 1:
            constant, slope = fit_batch_size(by_size)
            fit["step_alone"], fit["sentence"] = constant, slope
            fit["weight_bytes"] = weights * bytes_of_weight(system)
            used = weights * beam_size(system) + count_source_weights(size)
            fit["flops"] = 2 * used
        fits.append(fit)
    return fits


def bytes_of_weight(system: str) -> int:
    """Returns the bytes of a weight, from the name of the system."""
    return 1 if "int8" in system else 2 if "bfloat16" in system else 4


def beam_size(system: str) -> int:
    return 1 if "greedy" in system else BEAM_SIZE


def length_curve(points: list[dict]) -> list[tuple[int, float]]:
    """Returns lengths, and seconds of a batch."""
    return sorted(
        (row["length"], row["again"]["seconds"])
        for row in points
        if row["batch_size"] == CURVE_BATCH_SIZE
    )


def batch_size_curve(points: list[dict]) -> list[tuple[int, float]]:
    """Returns batch sizes, and seconds of a step."""
    return sorted(
        (row["batch_size"], row["again"]["seconds"] / row["length"])
        for row in points
        if row["length"] == CURVE_LENGTH
    )


def print_curves(size: str, fits: list[dict]) -> None:
    """Prints the slopes of both curves."""
    if not fits:
        return
    print(
        f"\n| {size} | ms a step | µs more for each step before it | ms a step "
        "without sentences | ms more for each sentence | weights GB/s | "
        "GFLOP/s |\n|---|---|---|---|---|---|---|"
    )
    for fit in fits:
        cells = [""] * 6
        if "step" in fit:
            cells[0] = f"{1e3 * fit['step']:.2f}"
            cells[1] = f"{1e6 * fit['position']:.1f}"
        if "sentence" in fit:
            cells[2] = f"{1e3 * fit['step_alone']:.2f}"
            cells[3] = f"{1e3 * fit['sentence']:.3f}"
            cells[4] = f"{fit['weight_bytes'] / fit['step_alone'] / 1e9:.1f}"
            cells[5] = f"{fit['flops'] / fit['sentence'] / 1e9:.0f}"
        print(f"| {fit['system']} |", " | ".join(cells), "|")


def draw(rows: list[dict], curves: list[dict], path: pathlib.Path) -> None:
    """Draws tokens a second of all systems, and the two curves of some."""
    cases = list(dict.fromkeys((r["model"], r["batch_size"]) for r in rows))
    models = list(dict.fromkeys(row["model"] for row in curves))
    figure, axes = pyplot.subplots(
        -(-len(cases) // 2) + len(models),
        2,
        figsize=(11, 3.2 * (-(-len(cases) // 2) + len(models))),
        squeeze=False,
    )
    places = list(axes.flat)
    for place, case in zip(places, cases, strict=False):
        chosen = [r for r in rows if (r["model"], r["batch_size"]) == case]
        draw_speeds(place, f"{case[0]}, batch {case[1]}", chosen)
    if len(cases) % 2:
        places[len(cases)].axis("off")
    for model, pair in zip(models, axes[-len(models) :], strict=False):
        draw_curves(model, pair, [r for r in curves if r["model"] == model])
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def draw_speeds(axis, title: str, rows: list[dict]) -> None:
    names = [row["system"] for row in rows]
    speeds = [row["again"]["tokens_per_second"] for row in rows]
    axis.bar_label(axis.barh(names, speeds), fmt="{:,.0f}", padding=2)
    axis.margins(x=0.2)
    axis.invert_yaxis()
    axis.set_title(f"{title}: target tokens/s", size=9)


def draw_curves(size: str, axes, rows: list[dict]) -> None:
    for system in dict.fromkeys(row["system"] for row in rows):
        of_system = [row for row in rows if row["system"] == system]
        for axis, points in zip(
            axes, (length_curve(of_system), batch_size_curve(of_system)), strict=True
        ):
            axis.plot(*zip(*points, strict=True), marker="o", label=system)
    titles = (
        f"{size}, batch {CURVE_BATCH_SIZE}: s a batch, by tokens a sentence",
        f"{size}, {CURVE_LENGTH} tokens: s a step, by sentences a batch",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, size=9)
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.legend()
