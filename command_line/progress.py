"""Shows on a terminal how far a command has come."""

from collections.abc import Iterable

import tqdm

SECONDS_BEFORE_THE_FIRST = 5  # A command that takes no longer shows nothing.


def show_progress(
    items: Iterable, total: int | None = None, unit: str = "sentence"
) -> Iterable:
    """Returns the items, and counts them on standard error if it is a terminal.

    `total` is their number, for the time that is left, or `None` if unknown.
    """
    return tqdm.tqdm(
        items,
        total=total,
        unit=f" {unit}s",
        delay=SECONDS_BEFORE_THE_FIRST,
        disable=None,  # Off where standard error is not a terminal.
    )
