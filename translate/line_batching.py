"""Translates any number of lines in batches of similar length.

Lines are read in windows, sorted by length within a window, and returned in
their original order.
"""

import collections
import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator

from command_line.options import option, positive
from translate.runtime.bounded_batches import cut_batches
from translate.runtime.runtime import Runtime

WINDOW = 2048  # Lines of a window.
BYTES_A_TOKEN = 4  # Average bytes of a subword in European text.
# Minimum cost of a line: a short line has as many beams, and its translation
# may be longer.
MIN_TOKENS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Batch size of translation."""

    batch_tokens: int = option(
        1024,
        "source tokens at a time, one counted as four bytes, and a line as "
        f"{MIN_TOKENS} or more",
        positive(int),
    )


def translate_lines(
    runtime: Runtime,
    lines: Iterable[bytes],
    batch_tokens: int,
    counts: collections.Counter,
    translate: Callable | None = None,
) -> Iterator[bytes]:
    """Yields a translation for each sentence, in order, in bounded memory.

    Lines may have line ends; the translations have none. A batch has `batch_tokens`
    source tokens, padding included. The `counts` grow by the sentences (`"lines"`)
    and by those that were cut at the model's limit of tokens (`"truncated"`).
    `translate` is a function from lines and their numbers, counted from 1, to the
    outputs, such as those of `make_sampler`; `None` translates by beam search.
    """

    def answer(batch):
        return translate(*batch) if translate else runtime.translate_batch(batch[0])

    lines = iter(lines)
    while window := list(itertools.islice(lines, WINDOW)):
        window = [line.rstrip(b"\r\n") for line in window]
        translations = [b""] * len(window)
        batches = list(cut_line_batches(window, batch_tokens, runtime.max_rows))
        first = counts["lines"] + 1
        numbered = (
            ([window[i] for i in indices], [first + i for i in indices])
            for indices in batches
        )
        for indices, outputs in zip(
            batches, runtime.map(answer, numbered), strict=True
        ):
            counts["lines"] += len(indices)
            if "truncated" in outputs:
                counts["truncated"] += int(outputs["truncated"].sum())
            for i, text in zip(indices, outputs["translation"], strict=True):
                # A model may generate line ends; each output is one line.
                translations[i] = b" ".join(text.splitlines())
        yield from translations


def cut_line_batches(
    lines: list[bytes], batch_tokens: int, max_rows: int = WINDOW
) -> Iterator[list[int]]:
    """Yields batches of indices of lines with a bound on their padded tokens."""

    def fits(rows, longest):
        tokens = max(MIN_TOKENS, 1 + longest // BYTES_A_TOKEN)
        return rows <= max_rows and rows * tokens <= batch_tokens

    return cut_batches(list(map(len, lines)), fits)


def print_warnings(counts: collections.Counter, of: str = "lines") -> None:
    """Prints how many lines were cut, if any."""
    if counts["truncated"]:
        print(
            f"{counts['truncated']:,} of {counts['lines']:,} {of} were cut at the "
            "model's limit of tokens",
            file=sys.stderr,
        )
