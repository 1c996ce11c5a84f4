"""Makes each placeholder occur in a translation as often as in its sentence."""

import collections
import re

from documents.markup.markup_tokens import Span, copy_with_edits
from documents.markup.segments import BLANKS
from documents.markup.tagged_sentences import Sentence
from text_processing.placeholders import VARIABLE, find_untranslatable_spans

# What a model may make of a variable.
CHANGED = re.compile(r"\{[^{}\0]*+\}|(?<![\w%])%[^\s⦅\0]++")


def repair_placeholders(sentence: Sentence, translation: str) -> str:
    """Replaces what a model made of placeholders, and removes what it repeated."""
    names = [sentence.text[leaf.start : leaf.end] for leaf in sentence.leaves]
    left = collections.Counter(name for _, name in find_parts(sentence.text))
    # Else braces may be of ordinary text, which is translated.
    has_only_names = all(name in names for name in left if CHANGED.fullmatch(name))
    others = []
    for span, name in find_parts(translation):
        if left[name]:
            left[name] -= 1
        elif (
            name in left
            or VARIABLE.fullmatch(name)
            or (has_only_names and CHANGED.fullmatch(name))
        ):
            others.append(span)
    lost = [n for n in left.elements() if n in names and VARIABLE.fullmatch(n)]
    written = [*lost, *[""] * len(others)]
    edits = [(*span, name) for span, name in zip(others, written, strict=False)]
    return normalize_blanks(copy_with_edits(translation, edits))


def find_parts(text: str) -> list[tuple[Span, str]]:
    """Returns what stays unchanged or may have been a variable, in order."""
    spans = find_untranslatable_spans(text)
    hidden = copy_with_edits(
        text, [(*span, "\0" * (span[1] - span[0])) for span in spans]
    )
    spans += [found.span() for found in CHANGED.finditer(hidden)]
    return [(span, text[slice(*span)]) for span in sorted(spans)]


def normalize_blanks(text: str) -> str:
    """Replaces all blanks but no-break spaces by one blank."""
    return BLANKS.sub(" ", text).strip(" ")
