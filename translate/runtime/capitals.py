"""Translates sentences in capitals as if only their first letter were a capital.

`export.model.document_translation` has the same rule for documents in the graph.
"""

import itertools
import re
import unicodedata

WORD_IN_CAPITALS = re.compile(r"[^\W\d_]{2,}")


def is_in_capitals(text: str) -> bool:
    """Whether a text has two words in capitals, and no small letter."""
    if any(unicodedata.category(character) == "Ll" for character in text):
        return False
    words = [w for w in WORD_IN_CAPITALS.findall(text) if has_two_capitals(w)]
    return len(words) > 1


def has_two_capitals(word: str) -> bool:
    """Whether two neighbouring letters are capitals."""
    return any(a.isupper() and b.isupper() for a, b in itertools.pairwise(word))


def with_one_capital(text: str) -> str:
    """Returns a text in lower case but for its first capital."""
    first = next((i for i, c in enumerate(text) if c.isupper()), len(text))
    return text[: first + 1] + text[first + 1 :].lower()
