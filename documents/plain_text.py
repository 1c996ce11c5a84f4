"""Translates plain text, sentence by sentence."""

import collections
from collections.abc import Callable, Generator

from documents.markup.markup_tokens import copy_with_edits
from documents.markup.tagged_sentences import find_middle_blank
from documents.markup.translate_markup import (
    Steps,
    TranslatedDocument,
    TranslationRequest,
)

# A text of so few characters is not split: it is hardly too long for a model,
# whose translation was cut since it did not end.
MAX_WHOLE = 100


def text_steps(text: str, split: Callable) -> Steps:
    """Translates plain text as `markup_steps` does documents with tags."""
    (spans,) = split([text])
    found = yield from translate_whole([text[start:end] for start, end in spans])
    edits = [(*span, new) for span, (new, _) in zip(spans, found, strict=True)]
    counts = collections.Counter(
        sentences=len(found), truncated=sum(was_cut for _, was_cut in found)
    )
    return TranslatedDocument(copy_with_edits(text, edits), counts)


def translate_whole(
    texts: list[str],
) -> Generator[TranslationRequest, list, list[tuple[str, bool]]]:
    """Translates sentences; one that the model cuts is split in two.

    Returns the translation of each, and whether it was cut all the same.
    """
    if not texts:
        return []
    found = list((yield TranslationRequest(texts)))
    halves = {
        i: split_in_two(texts[i])
        for i, (_, was_cut) in enumerate(found)
        if was_cut and len(texts[i]) > MAX_WHOLE
    }
    parts = [part for first, _, last in halves.values() for part in (first, last)]
    again = iter((yield from translate_whole(parts)))
    for i, (_, gap, _) in halves.items():
        (first, was_cut), (last, was_cut_too) = next(again), next(again)
        found[i] = f"{first}{gap}{last}", was_cut or was_cut_too
    return found


def split_in_two(text: str) -> tuple[str, str, str]:
    """Returns the halves of a text that is too long, and what is between them."""
    blank = find_middle_blank(text)
    if blank is None:
        middle = len(text) // 2
        return text[:middle], "", text[middle:]
    return text[:blank], " ", text[blank + 1 :]
