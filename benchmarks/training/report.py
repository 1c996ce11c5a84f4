"""Formats the table and the chart of `benchmarks.training`."""

import pathlib
import statistics

from matplotlib import pyplot

PACKAGE = "package"


def print_table(rows: list[dict], left_out: list[dict]) -> None:
    """Prints a row for each system, as Markdown."""
    if rows:
        print(
            "\n| size | precision | fill | system | s an update | target "
            "tokens/s | package is | peak GiB | of matmul peak |\n"
            "|---|---|---|---|---|---|---|---|---|"
        )
    for row in sorted(rows, key=lambda row: row["fill"]):
        times = row["all_seconds"]
        print(
            f"| {row['size']} | {row['precision']} | {row['fill']} | "
            f"{row['system']} | {row['seconds']:.3f} ({min(times):.3f} to "
            f"{max(times):.3f}) | {row['tokens_per_second']:,.0f} | "
            f"{format_package_speedup(row, rows)} | "
            f"{row['peak_bytes'] / 2**30:.2f} | {row['share_of_peak']:.0%} |"
        )
    if rows:
        print(f"\nmatmul peak: {rows[0]['peak_flops'] / 1e9:,.0f} GFLOP/s")
    for row in left_out:
        print(f"{row['system']} is left out: {row['reason']}")


def format_package_speedup(row: dict, rows: list[dict]) -> str:
    """Says how many times as fast as this system the package is."""
    package = [
        other["tokens_per_second"]
        for other in rows
        if other["system"] == PACKAGE and other["fill"] == row["fill"]
    ]
    if row["system"] == PACKAGE or not package:
        return ""
    return f"{package[0] / row['tokens_per_second']:.2f} ×"


def print_input(pipeline: dict) -> None:
    speeds = {
        name: statistics.median(values) / 1e6
        for name, values in pipeline["tokens_per_second"].items()
    }
    print(
        f"\ninput alone: {speeds['one_thread']:.1f} million real tokens a "
        f"second on one thread, {speeds['dataset']:.1f} million through the "
        f"dataset ({pipeline['pairs']:,} pairs, fill {pipeline['fill']:.2f})"
    )


def draw(rows: list[dict], path: pathlib.Path) -> None:
    """Draws tokens a second and peak memory, a pair of charts a case."""
    charts = (
        ("target tokens/s", "{:,.0f}", lambda row: row["tokens_per_second"]),
        ("peak GiB", "{:.2f}", lambda row: row["peak_bytes"] / 2**30),
    )
    cases = list(dict.fromkeys((r["size"], r["precision"], r["fill"]) for r in rows))
    figure, axes = pyplot.subplots(
        len(cases), 2, figsize=(9, 1.8 * len(cases)), squeeze=False
    )
    for (size, precision, fill), pair in zip(cases, axes, strict=True):
        chosen = [
            row
            for row in rows
            if (row["size"], row["precision"], row["fill"]) == (size, precision, fill)
        ]
        names = [row["system"] for row in chosen]
        for axis, (title, form, value) in zip(pair, charts, strict=True):
            bars = axis.barh(names, [value(row) for row in chosen])
            axis.bar_label(bars, fmt=form, padding=2)
            axis.margins(x=0.25)
            axis.invert_yaxis()
            axis.set_title(f"{size}, {precision}, fill {fill}: {title}", size=9)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
