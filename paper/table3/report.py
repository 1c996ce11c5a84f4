"""Writes the trained rows beside Table 3, with the findings."""

import math
import pathlib
import statistics

from command_line.markdown import format_table
from command_line.text_files import write_atomically, write_json
from paper.table3 import findings, results
from paper.table3.rows import PAPER, paper_row

NOTES = """\
PPL: per subword of the vocabulary, with EOS, unsmoothed. BLEU: the
paper's is tokenized, ours sacreBLEU (13a, cased). Both are of the validation
set, without averaged checkpoints, beam 4, length penalty 0.6. Parameters are in
millions. Differences are to the mean of base's runs: of PPL in percent, of BLEU
in points, with the middle 95 % of bootstrap samples in brackets.
"""
HEAD = (
    *("row", "ours differs in", "PPL, paper", "ours", "BLEU, paper", "ours"),
    *("parameters, paper", "ours", "PPL %, paper", "ours", "BLEU ±, paper", "ours"),
)


def make_table(rows: dict[str, dict]) -> dict:
    """Returns the table and the findings, as JSON, of what `read_rows` found."""
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
    mean = {
        "perplexity": math.exp(values["base"]["log_perplexity"]),
        "bleu": values["base"]["bleu"],
    }
    of_base = sum(samples[name] for name in runs) / len(runs)
    table = {}
    for name, row in rows.items():
        paper = paper_row(name) if name in PAPER else None
        names = ("perplexity", "bleu", "parameters")
        table[name] = {
            "change": results.describe_change(row["preset"], rows["base"]["preset"]),
            "paper": paper,
            "paper_to_base": paper and compare(paper, paper_row("base")),
            "ours": {key: row[key] for key in names},
            "ours_to_base": {
                **compare(row, mean),
                "bleu_interval": findings.interval(samples[name] - of_base),
            },
        }
    samples["base"] = of_base
    return {
        "base": rows["base"]["conditions"],
        "rows": table,
        "missing": [name for name in PAPER if name not in rows],
        "runs_of_base": len(runs),
        "margins": margins,
        "findings": [
            judge_finding(finding, measure, values, samples, margins[measure])
            for finding in findings.FINDINGS
            for measure in findings.NEARLY_EQUAL
        ],
    }


def compare(row: dict, base: dict) -> dict:
    """Returns the differences of a row to base."""
    percent = 100 * (row["perplexity"] / base["perplexity"]) - 100
    return {"perplexity_percent": percent, "bleu": row["bleu"] - base["bleu"]}


def judge_finding(
    finding: findings.Finding,
    measure: str,
    values: dict[str, dict],
    samples: dict,
    margin: float | None,
) -> dict:
    """Returns what the paper's numbers and ours mean for a finding.

    The numbers are the values of each row by measure, BLEU in bootstrap
    samples, and the margin of the measure.
    """
    is_bleu = measure == "bleu"
    pairs = (not is_bleu and finding.perplexity_pairs) or finding.pairs
    missing = [name for pair in pairs for name in pair if name not in values]
    within = findings.NEARLY_EQUAL[measure] if finding.equal else None
    signs = []
    for worse, better in pairs:
        if {worse, better} & set(missing):
            continue
        gain = values[better][measure] - values[worse][measure]
        bounds = None
        if is_bleu:
            bounds = findings.interval(samples[better] - samples[worse])
        gain *= 1 if is_bleu else -1
        signs.append(findings.judge(gain, margin, bounds, within))
    if not signs:
        ours = "no row of it is there"
    elif margin is None:
        ours = "cannot be told from one run of base"
    else:
        ours = findings.verdict(signs)
    return {
        "finding": finding.text,
        "measure": measure.removeprefix("log_"),
        "in_the_paper": describe_paper_result(finding, pairs, is_bleu),
        "in_ours": ours,
        "signs": signs,
        "missing": missing,
    }


def describe_paper_result(
    finding: findings.Finding, pairs: list[list[str]], is_bleu: bool
) -> str:
    """Returns how many pairs of the paper's rows support a finding."""
    column = 1 if is_bleu else 0
    gains = [PAPER[better][column] - PAPER[worse][column] for worse, better in pairs]
    if finding.equal:
        return f"{abs(gains[0]):.2f} apart"
    support = sum(gain > 0 if is_bleu else gain < 0 for gain in gains)
    return f"{support} of {len(gains)}"


def format_report(report: dict) -> str:
    """Returns the report as Markdown."""
    rows = [format_cells(name, row) for name, row in report["rows"].items()]
    lines = [format_table(HEAD, rows), "", f"Base here: {report['base']}.", "", NOTES]
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
    cells = []
    for each in report["findings"]:
        ours = each["in_ours"]
        if each["missing"]:
            ours += f" (without {', '.join(dict.fromkeys(each['missing']))})"
        cells.append([each["finding"], each["measure"], each["in_the_paper"], ours])
    head = ["finding", "by", "rows for it in the paper", "in ours"]
    return "\n".join([*lines, format_table(head, cells), ""])


def format_cells(name: str, row: dict) -> list:
    ours, change = row["ours"], row["ours_to_base"]
    paper, theirs = [None] * 3, [None] * 2
    if row["paper"]:
        perplexity, bleu, millions = row["paper"].values()
        paper = [f"{perplexity:.2f}", f"{bleu:.1f}", millions]
        theirs = [f"{difference:+.1f}" for difference in row["paper_to_base"].values()]
    low, high = change["bleu_interval"]
    cells = [
        *(name, row["change"]),
        *(paper[0], f"{ours['perplexity']:.2f}"),
        *(paper[1], f"{ours['bleu']:.1f}"),
        *(paper[2], f"{ours['parameters'] / 1e6:.2f}"),
        *(theirs[0], f"{change['perplexity_percent']:+.1f}"),
        *(theirs[1], f"{change['bleu']:+.1f} ({low:+.1f} to {high:+.1f})"),
    ]
    if name.startswith("base"):  # All differences are to the mean of these.
        cells[8:12] = [None] * 4
    return cells


def write(run_dir: pathlib.Path, show: bool = True) -> None:
    """Writes `table3.md` and `table3.json`; with `show`, prints the first.

    Raises:
        UserError: If base is not there.
    """
    report = make_table(results.read_rows(run_dir))
    markdown = format_report(report)
    write_json(run_dir / "table3.json", report)
    write_atomically(run_dir / "table3.md", markdown.encode())
    if show:
        print(markdown)
        print(f"written to {run_dir / 'table3.md'} and .json")
