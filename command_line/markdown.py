"""Formats tables as Markdown."""

from collections.abc import Iterable


def format_table(head: Iterable, rows: Iterable[Iterable]) -> str:
    """Returns a table of cells; those that are `None` are empty."""
    head = list(head)
    lines = [
        "| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |"
        for row in (head, *rows)
    ]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines)
