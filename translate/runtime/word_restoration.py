"""Restores the symbols and terms that translations lost."""

import contextlib
import functools
from collections.abc import Callable

import numpy as np

from documents.glossary import Glossary
from documents.translation_repair import (
    has_lost_symbols,
    is_alignable,
    place_terms,
    restore_symbols,
)
from translate.runtime.bounded_batches import MAX_ALIGNED_SQUARES, in_batches

Pairs = list[tuple[str, str]]


def restore_lost_words(
    pairs: Pairs, glossary: Glossary, align: Callable[[Pairs], list] | None
) -> list[str]:
    """Returns the translations of pairs with the symbols and terms that they lost.

    `align` returns the word alignments of pairs; without it, or where it fails, places
    are guessed.
    """
    found = [translation for _, translation in pairs]
    for lacks, repair in (
        (has_lost_symbols, restore_symbols),
        (glossary.lacks, functools.partial(place_terms, glossary)),
    ):
        lossy = {
            row: (text, found[row])
            for row, (text, _) in enumerate(pairs)
            if lacks(text, found[row])
        }
        aligned = align_short(list(lossy.values()), align) if align else {}
        for row, pair in lossy.items():
            found[row] = repair(*pair, aligned.get(pair))
    return found


def align_short(
    pairs: Pairs, align: Callable[[Pairs], list]
) -> dict[tuple[str, str], np.ndarray]:
    """Returns the word alignments of those pairs that can be aligned."""
    short = [pair for pair in pairs if is_alignable(*pair)]
    # The translation is there, and needs no alignment.
    with contextlib.suppress(Exception):
        found = in_batches(short, MAX_ALIGNED_SQUARES, align)
        return dict(zip(short, found, strict=True))
    return {}
