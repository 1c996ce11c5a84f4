"""Augments training pairs: case, typing errors, final punctuation.

The shares are those of the Firefox translation models. Case and punctuation
change on both sides, as in OpusTrainer: so a translation keeps the case of its
source, and what capitals mean, as in acronyms, stays the same in all text.
Typing errors are on the source alone, so the model translates what was meant.
"""

import hashlib
import random
import re
from collections.abc import Collection

UPPER_CASE = 0.07
TITLE_CASE = 0.05
TYPING_ERRORS = 0.05
NO_FINAL_PUNCTUATION = 0.2
WORDS_PER_ERROR = 10
# Marks of the same kind in several scripts.
FINAL = (".．。｡…।۔።", "!！", "?？؟", ",，、،", ":：", ";；؛")
WORD_START = re.compile(r"(?<!\S)\w")
VERSION = 1  # Encoded text depends on it.


def compile_symbols(symbols: Collection[str]) -> re.Pattern | None:
    """Returns a pattern of texts that stay as they are, `None` of none."""
    longest_first = sorted(filter(None, symbols), key=len, reverse=True)
    if not longest_first:
        return None
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def augment(
    pair: tuple[str, str],
    name: str,
    symbols: re.Pattern | None = None,
    may_split_words: bool = True,
) -> tuple[str, str]:
    """Returns a pair with or without changes, which depend on `name` alone.

    Args:
        pair: A source and its target.
        name: Such as the seed and the number of the pair.
        symbols: Text that stays as it is, from `compile_symbols`.
        may_split_words: Bool, whether typing errors insert blanks.

    Example:
        >>> augment(("A cat.", "Eine Katze."), "0 1")
        ('A cat', 'Eine Katze')
    """
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    case, final, typing = (
        int.from_bytes(digest[i : i + 4], "little") / 2**32 for i in (0, 4, 8)
    )
    if final < NO_FINAL_PUNCTUATION:
        pair = without_final_punctuation(*pair)
    if case < UPPER_CASE:
        pair = tuple(change_case(text, str.upper, symbols) for text in pair)
    elif case < UPPER_CASE + TITLE_CASE:
        pair = tuple(change_case(text, title, symbols) for text in pair)
    source, target = pair
    if typing < TYPING_ERRORS:
        source = with_typing_errors(
            source, random.Random(digest), symbols, may_split_words
        )
    return source, target


def split(text: str, symbols: re.Pattern | None) -> list[str]:
    """Splits text into what may change and, at odd indices, symbols."""
    return symbols.split(text) if symbols else [text]


def change_case(text: str, change, symbols: re.Pattern | None) -> str:
    parts = split(text, symbols)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def title(text: str) -> str:
    """Returns text whose words begin in upper case."""
    return WORD_START.sub(lambda match: match[0].upper(), text)


def without_final_punctuation(source: str, target: str) -> tuple[str, str]:
    """Removes the last marks of both sides, if they are of the same kind."""
    sides = source.rstrip(), target.rstrip()
    for marks in FINAL:
        if all(side.endswith(tuple(marks)) for side in sides):
            return tuple(side.rstrip(marks).rstrip() for side in sides)
    return source, target


def with_typing_errors(
    text: str,
    generator: random.Random,
    symbols: re.Pattern | None,
    may_split_words: bool = True,
) -> str:
    """Returns text with an error in about every tenth word, at least one.

    Letters are swapped, left out, doubled or replaced by another one of the
    text; blanks are left out or inserted.
    """
    items = []
    for number, part in enumerate(split(text, symbols)):
        items += [part] if number % 2 else part
    for _ in range(1 + len(text.split()) // WORDS_PER_ERROR):
        letters = [
            i for i, item in enumerate(items) if len(item) == 1 and item.isalpha()
        ]
        if len(letters) < 2:  # An error would leave nothing.
            break
        place = generator.choice(letters)
        error = generator.randrange(5)
        if error == 0 and place + 1 in letters:
            items[place : place + 2] = items[place + 1], items[place]
        elif error == 1:
            items[place] *= 2
        elif error == 2:
            items[place] = items[generator.choice(letters)]
        elif error == 3 and place and items[place - 1] == " ":
            items[place - 1] = ""
        elif error == 3 and may_split_words:
            items[place] = f" {items[place]}"
        else:
            items[place] = ""
    return "".join(items)
