"""Draws Table 3 beside the trained rows."""

import io
import math

from matplotlib.figure import Figure


def draw(report: dict) -> bytes:
    """Returns a PNG: the differences to base, the paper's and ours."""
    rows = {
        name: row for name, row in report["rows"].items() if not name.startswith("base")
    }
    margins = report["margins"]
    if margins["bleu"] is not None:
        margins = {
            "bleu": (-margins["bleu"], margins["bleu"]),
            "perplexity_percent": [
                100 * math.expm1(sign * margins["log_perplexity"]) for sign in (-1, 1)
            ],
        }
    figure = Figure(figsize=(9, 1.5 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, key, title in (
        (axes[0], "bleu", "BLEU, points more than base"),
        (axes[1], "perplexity_percent", "perplexity, % more than base"),
    ):
        for height, row in enumerate(rows.values()):
            ours = row["ours_to_base"]
            theirs = row["paper_to_base"][key]
            axis.plot(theirs, height - 0.15, "D", color="tab:orange")
            axis.plot(ours[key], height + 0.15, "o", color="tab:blue")
            if key == "bleu":
                axis.hlines(height + 0.15, *ours["bleu_interval"], color="tab:blue")
        axis.axvline(0, color="gray", linewidth=0.8)
        if margins["bleu"] is not None:
            axis.axvspan(*margins[key], color="gray", alpha=0.2, linewidth=0)
        axis.set_title(title, size=10)
    axes[0].set_yticks(range(len(rows)), list(rows))
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    axes[0].plot([], [], "D", color="tab:orange", label="paper")
    axes[0].plot(
        [], [], "o-", color="tab:blue", label="ours, 95 % of bootstrap samples"
    )
    axes[0].fill([], [], color="gray", alpha=0.2, label="chance of the seed")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    base = "base here: " + report["base"].replace("; ", ";\n", 1)
    figure.suptitle(base, size=8)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
