"""Shows on a terminal how far a command has come."""

from collections.abc import Iterable

import tqdm

# A command that takes no longer shows nothing.
SECONDS_BEFORE_THE_FIRST = 5


def show_progress(
    items: Iterable, total: int | None = None, unit: str = "sentence"
) -> Iterable:
    """Returns the items, and counts them on standard error if it is a terminal.

    Args:
        items: The items.
        total: Int, their number, for the time that is left. `None` if unknown.
        unit: String, the noun for an item, in the singular.
    """
    return tqdm.tqdm(
        items,
        total=total,
        unit=f" {unit}s",
        delay=SECONDS_BEFORE_THE_FIRST,
        disable=None,  # Off where standard error is not a terminal.
    )
