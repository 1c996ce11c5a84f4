"""Compares a resumed run with its earlier options, and reports changes."""

import pathlib

from command_line.bleu import DEFAULT
from train.run.run_folder import read_history


def carry_on(run_dir: pathlib.Path, known: dict, description: dict) -> None:
    """Copies the lasting entries to a resumed run, and prints what changed.

    Args:
        run_dir: Folder of the run.
        known: Its description so far.
        description: The new description. It gets the `"packages"` with which
            the run began, and `"best_since"`, the update up to which scores
            are ignored, as they are not comparable.
    """
    packages = known.get("packages", {})
    others = [
        f"{name} {packages.get(name)} ({version} now)"
        for name, version in description["packages"].items()
        if packages.get(name) != version
    ]
    if others:
        print(
            f"note: the run began with {', '.join(others)}. NumPy may shuffle "
            "otherwise: then its pairs come in another order from here on"
        )
    description["packages"] = packages
    description["best_since"] = known.get("best_since", 0)
    reason = new_measure(known, description)
    if reason:
        rows = read_history(run_dir)
        since = int(rows[-1]["step"]) if rows else 0
        print(f"note: {reason}; best and patience count after update {since:,}")
        description["best_since"] = since


def new_measure(known: dict, description: dict) -> str | None:
    """Returns why new scores are not comparable with earlier ones."""
    before, now = known["arguments"], description["arguments"]
    if known["corpus"].get("validation") != description["corpus"]["validation"]:
        return "the validation set is another one"
    if "best_since" not in known and now["average_decay"] is not None:
        return "the moving averages are validated now, not the weights"
    old, new = (a.get("bleu_tokenize") or DEFAULT for a in (before, now))
    if now["best_by"] == "bleu" and old != new:
        return f"BLEU counts tokens of {new}, no longer of {old}"
    return None
