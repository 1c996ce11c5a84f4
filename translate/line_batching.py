"""Translates any number of lines in batches of similar length.

Lines are read in windows, sorted by length within a window, and returned in
their original order.
"""

import collections
import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator

from command_line.errors import UserError
from command_line.options import option
from export.bundle.server_config import WARMUP_BATCH_SIZES
from translate.nearest_translations import NearestTranslator
from translate.runtime.tf_serving import Client
from translate.sampling import Sampler

WINDOW = 2048  # Lines of a window.
BYTES_A_TOKEN = 4  # Average bytes of a subword in European text.
# Minimum cost of a line: a short line has as many beams, and its translation
# may be longer.
MIN_TOKENS = 8
# Maximum batch size of the server, as in `batching_parameters.txt`.
MAX_ROWS = WARMUP_BATCH_SIZES[-1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Batch size of translation.

    Raises:
        UserError: If it is below 1.
    """

    batch_tokens: int = option(
        1024,
        "source tokens at a time, one counted as four bytes, and a line as "
        f"{MIN_TOKENS} or more",
        int,
    )

    def __post_init__(self):
        if self.batch_tokens < 1:
            raise UserError(
                f"--batch-tokens must be 1 or more. Received: {self.batch_tokens}"
            )


def translate_lines(
    translate: Callable,
    lines: Iterable[bytes],
    batch_tokens: int,
    counts: collections.Counter,
) -> Iterator[bytes]:
    """Translates sentences in bounded memory.

    Args:
        translate: Function that `load` returned, or one of numbered lines.
        lines: Sentences, with or without line ends.
        batch_tokens: Int, source tokens of a batch, padding included.
        counts: Counter to which the function adds the number of sentences
            (`"lines"`), of those whose source or translation was cut at the
            model's limit of tokens (`"truncated"`), and of those whose lengths
            differ too much (`"suspicious"`, if the model reports it).

    Yields:
        A translation for each sentence, in order, without line ends.
    """
    lines = iter(lines)
    is_numbered = isinstance(translate, (NearestTranslator, Sampler))
    client = translate.client if is_numbered else translate
    if isinstance(client, Client):
        max_rows = MAX_ROWS
        translate_all = functools.partial(client.map, answer=translate)
    else:
        max_rows, translate_all = WINDOW, functools.partial(map, translate)
    while window := list(itertools.islice(lines, WINDOW)):
        window = [line.rstrip(b"\r\n") for line in window]
        translations = [b""] * len(window)
        batches = list(cut_batches(window, batch_tokens, max_rows))
        texts = ([window[i] for i in places] for places in batches)
        if is_numbered:
            first = counts["lines"] + 1
            numbers = ([first + i for i in places] for places in batches)
            texts = zip(texts, numbers, strict=True)
        for places, outputs in zip(batches, translate_all(texts), strict=True):
            counts["lines"] += len(places)
            for name in {"truncated", "suspicious"} & set(outputs):
                counts[name] += int(outputs[name].numpy().sum())
            for i, text in zip(places, outputs["translation"].numpy(), strict=True):
                # A model may generate line ends; each output is one line.
                translations[i] = b" ".join(text.splitlines())
        yield from translations


def cut_batches(
    lines: list[bytes], batch_tokens: int, max_rows: int = WINDOW
) -> Iterator[list[int]]:
    """Yields batches of indices of lines of similar length."""
    batch = []
    for place in sorted(range(len(lines)), key=lambda i: len(lines[i])):
        # The line is the longest so far, so the others are padded to it.
        tokens = max(MIN_TOKENS, 1 + len(lines[place]) // BYTES_A_TOKEN)
        too_long = tokens * (len(batch) + 1) > batch_tokens
        if batch and (too_long or len(batch) == max_rows):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def print_warnings(counts: collections.Counter, of: str = "lines") -> None:
    """Prints how many lines were cut and how many are suspicious, if any."""
    for name, message in (
        ("truncated", "were cut at the model's limit of tokens"),
        ("suspicious", "are suspicious: too long or short for their sources"),
    ):
        if counts[name]:
            print(
                f"{counts[name]:,} of {counts['lines']:,} {of} {message}",
                file=sys.stderr,
            )
