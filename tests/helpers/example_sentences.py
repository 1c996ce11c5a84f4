"""Ordinary sentences, and texts with unusual characters."""

import numpy as np

SENTENCES = [
    "A brown dog runs over the green grass.",
    "Two cats sleep.",
    "The woman reads a long letter to her old friend in the garden.",
    "Is it raining?",
    "Don't open the blue door!",
    "My brother has three small birds and a horse.",
]

NASTY = [
    b"",
    b"   ",
    b"\t \n",
    b"\x00\x00",
    b"\xff\xfe broken \x80",
    "🐈‍⬛ 👍🏽 \U0010ffff".encode(),
    b"\x01\x02\x7f bell\x07",
    "ａ　ｆｕｌｌ".encode(),
    "e\u0301\u0302\u0303 \u202eright to left".encode(),
    b"word" * 2500,
]
# Text for the tests of the page of `translate.explain`. It would close the element
# that holds the data, were it not escaped.
TEXT_WITH_MARKUP = "Two cats </script><b>sleep</b>."
WORDS = [word.encode() for s in SENTENCES for word in s.split()]


def make_string(random):
    """Returns words, characters of all of Unicode, or any bytes."""
    length = int(random.integers(0, 40))
    kind = random.integers(0, 10)
    if kind < 5:
        return b" ".join(random.choice(WORDS, length // 2).tolist())
    if kind < 7:
        points = random.integers(0, 0x110000, length)
        return "".join(map(chr, points)).encode("utf-8", "surrogatepass")
    if kind < 8:
        return bytes(random.integers(0, 128, length, np.uint8))
    if kind < 9:
        return bytes(random.integers(0, 256, length, np.uint8))
    return NASTY[random.integers(len(NASTY))] + b"." * length
