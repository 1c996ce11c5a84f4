"""What is new in a run that goes on, and what of it follows."""

import pathlib

from command_line.bleu import DEFAULT
from train.run.run_folder import read_history


def carry_on(run_dir: pathlib.Path, known: dict, description: dict) -> None:
    """Notes what a run that goes on keeps; tells what is new in it.

    Args:
        run_dir: Its folder.
        known: Its description so far.
        description: That from now on. It gets the `"packages"` that the run
            began with, and `"best_since"`, the update up to which no score
            makes a checkpoint the best: those were of another kind.
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
    """Says why scores are not to be compared with the earlier ones."""
    before, now = known["arguments"], description["arguments"]
    if known["corpus"].get("validation") != description["corpus"]["validation"]:
        return "the validation set is another one"
    if "best_since" not in known and now["average_decay"] is not None:
        return "the moving averages are validated now, not the weights"
    old, new = (a.get("bleu_tokenize") or DEFAULT for a in (before, now))
    if now["best_by"] == "bleu" and old != new:
        return f"BLEU counts tokens of {new}, no longer of {old}"
    return None
