"""Writes the trained rows beside Table 3, with the findings."""

import json
import math
import pathlib
import statistics

import numpy as np

from command_line.text_files import write_atomically
from paper.table3 import findings, picture, results

NOTES = """\
PPL: per subword of the vocabulary, with EOS, unsmoothed. BLEU: the
paper's is tokenized, ours sacreBLEU (13a, cased). Both are of the validation
set, without averaged checkpoints, beam 4, length penalty 0.6. Parameters are in
millions. Differences are to the mean of base's runs: of PPL in percent, of BLEU
in points, with the middle 95 % of bootstrap samples in brackets. Minutes are
those of the updates alone, beside whatever else the machine did.
"""


def make_table(rows: dict[str, dict]) -> dict:
    """Returns the table and the findings, as JSON.

    Args:
        rows: Result of `read_rows`.
    """
    runs = [name for name in rows if name.startswith("base")]
    samples = findings.resample({n: row["counts"] for n, row in rows.items()})
    values = {
        name: {"bleu": row["bleu"], "log_perplexity": math.log(row["perplexity"])}
        for name, row in rows.items()
    }
    repeated = {
        measure: [values[name][measure] for name in runs]
        for measure in findings.NEARLY_EQUAL
    }
    margins = {m: findings.seed_margin(v) for m, v in repeated.items()}
    # All are compared with the mean of base's runs.
    values["base"] = {m: statistics.fmean(v) for m, v in repeated.items()}
    of_base = sum(samples[name] for name in runs) / len(runs)
    table = {
        name: describe_row(
            name, row, rows["base"], values["base"], samples[name] - of_base
        )
        for name, row in rows.items()
    }
    samples["base"] = of_base
    return {
        "base": rows["base"]["conditions"],
        "rows": table,
        "missing": [name for name in results.PAPER if name not in rows],
        "runs_of_base": len(runs),
        "margins": margins,
        "findings": [
            judge_finding(finding, measure, values, samples, margins)
            for finding in findings.FINDINGS
            for measure in findings.NEARLY_EQUAL
        ],
    }


def describe_row(
    name: str, row: dict, base: dict, mean: dict, gains: np.ndarray
) -> dict:
    """Returns a row's numbers, the paper's and ours, and those to base.

    Args:
        name: The row's.
        row: Its measurements.
        base: The same of base.
        mean: The mean of base's runs, by measure.
        gains: The row's BLEU above that of base, in bootstrap samples.
    """
    ours = {"perplexity": row["perplexity"], "bleu": row["bleu"]}
    mean = {"perplexity": math.exp(mean["log_perplexity"]), "bleu": mean["bleu"]}
    described = {
        "change": results.describe_change(row["preset"], base["preset"]),
        "paper": None,
        "ours": {**ours, "parameters": row["parameters"], "minutes": row["minutes"]},
        "ours_to_base": {
            **compare(ours, mean),
            "bleu_interval": findings.interval(gains),
        },
    }
    if name in results.PAPER:
        described["paper"] = results.paper_row(name)
        described["paper_to_base"] = compare(
            described["paper"], results.paper_row("base")
        )
    return described


def compare(row: dict, base: dict) -> dict:
    """Returns the differences of a row to base."""
    percent = 100 * (row["perplexity"] / base["perplexity"]) - 100
    return {"perplexity_percent": percent, "bleu": row["bleu"] - base["bleu"]}


def judge_finding(
    finding: findings.Finding,
    measure: str,
    values: dict[str, dict],
    samples: dict,
    margins: dict,
) -> dict:
    """Returns what the paper and what we measured say of a finding.

    Args:
        finding: The finding.
        measure: `"bleu"` or `"log_perplexity"`.
        values: Measurements of each row, by measure.
        samples: The BLEU of each row in bootstrap samples.
        margins: How far chance drives a run, by measure.
    """
    pairs = finding.worse_better_pairs
    if measure == "log_perplexity" and finding.perplexity_pairs:
        pairs = finding.perplexity_pairs
    names = [name for pair in pairs for name in pair]
    missing = [name for name in names if name not in values]
    signs = []
    for worse, better in pairs:
        if {worse, better} & set(missing):
            continue
        difference = values[better][measure] - values[worse][measure]
        bounds = None
        if measure == "bleu":
            bounds = findings.interval(samples[better] - samples[worse])
        else:
            difference = -difference
        if finding.equal:
            bound = findings.NEARLY_EQUAL[measure]
            sign = findings.sign_of_equality(
                difference, margins[measure], bound, bounds
            )
        else:
            sign = findings.sign_of(difference, margins[measure], bounds)
        signs.append(sign)
    if not signs:
        ours = "no row of it is there"
    elif margins[measure] is None:
        ours = "cannot be told from one run of base"
    else:
        ours = findings.verdict(signs)
    return {
        "finding": finding.text,
        "measure": measure.removeprefix("log_"),
        "in_the_paper": describe_paper_result(finding, pairs, measure),
        "in_ours": ours,
        "signs": signs,
        "missing": missing,
    }


def describe_paper_result(finding: findings.Finding, pairs: tuple, measure: str) -> str:
    """Says how many pairs of the paper's rows speak for a finding."""
    key = measure.removeprefix("log_")
    gains = [
        results.paper_row(better)[key] - results.paper_row(worse)[key]
        for worse, better in pairs
    ]
    if finding.equal:
        return f"{abs(gains[0]):.2f} apart"
    for_ = [gain > 0 if key == "bleu" else gain < 0 for gain in gains]
    return f"{sum(for_)} of {len(gains)}"


def format_table(report: dict) -> str:
    """Returns the report as Markdown."""
    lines = [
        "| row | ours differs in | PPL, paper | ours | BLEU, paper | ours "
        "| parameters, paper | ours | PPL %, paper | ours | BLEU ±, paper "
        "| ours | minutes |",
        "|---" * 13 + "|",
        *(format_row(name, row) for name, row in report["rows"].items()),
        "",
        f"Base here: {report['base']}.",
        "",
        NOTES,
    ]
    if report["missing"]:
        lines += [f"Not there yet: {', '.join(report['missing'])}.", ""]
    margins = report["margins"]
    if margins["bleu"] is not None:
        percent = 100 * math.expm1(margins["log_perplexity"])
        lines += [
            f"Chance: {report['runs_of_base']} runs of base differ in their "
            "seed alone. One more would lie within "
            f"{margins['bleu']:.2f} BLEU and {percent:.1f} % of perplexity of "
            "their mean, 19 times out of 20 (paper/table3/findings.py).",
            "",
        ]
    lines += [
        "| finding | by | rows for it in the paper | in ours |",
        "|---|---|---|---|",
    ]
    for each in report["findings"]:
        lacking = ", ".join(dict.fromkeys(each["missing"]))
        lines.append(
            f"| {each['finding']} | {each['measure']} "
            f"| {each['in_the_paper']} | {each['in_ours']}"
            + (f" (without {lacking})" if lacking else "")
            + " |"
        )
    return "\n".join(lines) + "\n"


def format_row(name: str, row: dict) -> str:
    ours, change = row["ours"], row["ours_to_base"]
    if row["paper"]:
        paper, theirs = row["paper"], row["paper_to_base"]
        millions = "" if paper["millions"] is None else paper["millions"]
        paper = f"{paper['perplexity']:.2f}", f"{paper['bleu']:.1f}", millions
        theirs = (f"{theirs['perplexity_percent']:+.1f}", f"{theirs['bleu']:+.1f}")
    else:
        paper, theirs = ("", "", ""), ("", "")
    low, high = change["bleu_interval"]
    cells = [
        name,
        row["change"],
        paper[0],
        f"{ours['perplexity']:.2f}",
        paper[1],
        f"{ours['bleu']:.1f}",
        paper[2],
        f"{ours['parameters'] / 1e6:.2f}",
        theirs[0],
        f"{change['perplexity_percent']:+.1f}",
        theirs[1],
        f"{change['bleu']:+.1f} ({low:+.1f} to {high:+.1f})",
        "" if ours["minutes"] is None else f"{ours['minutes']:.1f}",
    ]
    if name.startswith("base"):  # All differences are to the mean of these.
        cells[8:12] = [""] * 4
    return "| " + " | ".join(map(str, cells)) + " |"


def write(run_dir: pathlib.Path, show: bool = True) -> None:
    """Writes `table3.md`, `.json` and `.png`; with `show`, prints the first.

    Raises:
        UserError: If base is not there.
    """
    report = make_table(results.read_rows(run_dir))
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    markdown = format_table(report)
    for suffix, content in (
        ("json", text.encode()),
        ("md", markdown.encode()),
        ("png", picture.draw(report)),
    ):
        write_atomically(run_dir / f"table3.{suffix}", content)
    if show:
        print(markdown)
        print(f"written to {run_dir / 'table3.md'}, .json and .png")
