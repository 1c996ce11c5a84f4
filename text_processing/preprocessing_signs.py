"""Signs that a text was changed: tokenized, lower-cased, or stripped of stops.

A model learns the form of its training text, so the text that it translates must
have the same form.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

# A blank before a comma or a full stop (French has one before other marks), and
# what Moses's tokenizer writes.
TOKENIZED = re.compile(r"\S\s[.,、。](?:\s|$)|@-@|&(?:apos|quot|#91|#93|#124);")
TAG = re.compile(r"^<2[\w-]+> ")  # Of the target's language, before the sentence.
# Thai and Lao end sentences with a blank.
THAI_OR_LAO = re.compile(r"[\u0e00-\u0eff]")


class Sign(NamedTuple):
    """What some lines have.

    Attributes:
        is_in: Function from a line to whether it has the sign.
        max_share: Float, share of the lines above which a text was changed. Raw
            text of Multi30k and FLORES has at most 0.1, 0.5 and 5 percent; after
            the change, these have at least 14, 100 and 94 percent.
        description: What such lines do.
    """

    is_in: Callable[[str], bool]
    max_share: float
    description: str


def is_tokenized(line: str) -> bool:
    return TOKENIZED.search(line) is not None


def begins_in_lower_case(line: str) -> bool:
    first = next(filter(str.isalpha, TAG.sub("", line)), "")
    # Georgian has capitals, but begins no sentence with them.
    return first != first.title()


def ends_without_stop(line: str) -> bool:
    last = line.rstrip()[-1:] or " "
    is_stop = unicodedata.category(last).startswith("P")
    return not is_stop and not THAI_OR_LAO.search(line)


SIGNS = {
    "tokenized": Sign(is_tokenized, 0.1, "look tokenized (“ .”, “&apos;” or “@-@”)"),
    "lower_case": Sign(begins_in_lower_case, 0.5, "begin with a lower-case letter"),
    "without_stop": Sign(ends_without_stop, 0.5, "do not end in punctuation"),
}
