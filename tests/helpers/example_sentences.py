"""Ordinary sentences, and texts with unusual characters."""

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
REFERENCE = "sleep. cats Two"
