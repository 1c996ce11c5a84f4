"""Generates documents with nested tags, and translators with known answers."""

import itertools
import random
import re

import numpy as np

from documents.markup.translate_markup import SentenceTranslator
from documents.markup.word_alignment import find_words

PROTECTED_TEXTS = ("<code>x1 y</code>", "https://a.org/b?c=1&amp;d", "{name}", "5 kg")
# Blanks just inside a tag.
BLANKS = ("", "", "", " ", "\n  ", "&#32;", "&#160;")
VOIDS = ("<img/>", "<!-- c -->", "<wbr/>")
# A full stop, or what else stands between blanks.
TOKEN = re.compile(r"5 kg|[^\s.]+(?:\.[^\s.]+)*|\.")
SENTENCE = re.compile(r"\S(?:.*?\.(?=\s|\Z)|.*\S|)")
BLOCKS = ("div", "p", "ul", "li", "td")


class Writer:
    """Writes XHTML whose words occur once, and whose tags have numbers."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.numbers = itertools.count()

    def document(self, crossing: bool = False) -> str:
        """Writes blocks; `crossing` tags may reach into the next sentence."""
        blocks = [self.block(crossing, 0) for _ in range(3)]
        return f"<body>\n{''.join(blocks)}\n</body>"

    def block(self, crossing, depth):
        tag = self.random.choice(BLOCKS)
        number = next(self.numbers)
        inner = " ".join(
            self.sentence(self.words()) for _ in range(self.random.randint(1, 3))
        )
        if crossing and self.random.random() < 0.5:
            words = [self.words() for _ in range(2)]
            words[0][-1] += "."
            inner += " " + self.sentence([*words[0], *words[1]])
        if depth < 2 and self.random.random() < 0.4:
            inner = f"{inner}\n  {self.block(crossing, depth + 1)}"
        return f"<{tag} id='{number}'>{inner}</{tag}>\n"

    def words(self):
        return [
            f"w{next(self.numbers)}"
            + self.random.choice(["", "", "", "&eacute;", "&#233;"])
            for _ in range(self.random.randint(1, 9))
        ]

    def sentence(self, words):
        return self.inline(words, 0) + "."

    def inline(self, words, depth):
        if depth < 4 and self.random.random() < 0.8:
            ends = range(len(words) + 1)
            start, end = sorted(self.random.sample(ends, 2))
            tag = self.random.choice("abiu")
            number = next(self.numbers)
            inner = self.inline(words[start:end], depth + 1)
            before, after = self.random.choices(BLANKS, k=2)
            parts = [
                self.inline(words[:start], depth + 1) if start else "",
                f"<{tag} id='{number}'>{before}{inner}{after}</{tag}>",
                self.inline(words[end:], depth + 1) if end < len(words) else "",
            ]
            return " ".join(filter(None, parts))
        some = list(words)
        if self.random.random() < 0.2:
            some.insert(1, self.random.choice(PROTECTED_TEXTS))
        if self.random.random() < 0.2:
            some.insert(1, self.random.choice(VOIDS))
        return " ".join(some)


def split_sentences(texts):
    """Cuts behind full stops that a blank follows."""
    return [[found.span() for found in SENTENCE.finditer(t)] for t in texts]


def permuted(order):
    """Returns a translator that writes words in capitals in another order.

    `order` is a function from a number of words to the place of each.
    """

    def write(text):
        tokens = [t.upper() if t.isalnum() else t for t in TOKEN.findall(text)]
        return " ".join(tokens[i] for i in order(len(tokens)))

    def translate(texts):
        return [write(text) for text in texts], [False] * len(texts)

    def align(sources, targets):
        pairs = zip(sources, targets, strict=True)
        return [align_tokens(*pair, order) for pair in pairs]

    return SentenceTranslator(split_sentences, translate, align)


def align_tokens(source, target, order):
    """Returns the weights of words whose tokens stand in another order."""
    words = find_words(source)
    of_token = [
        [i for i, w in enumerate(words) if found.start() <= w.start < found.end()]
        for found in TOKEN.finditer(source)
    ]
    of_target = [i for k in order(len(of_token)) for i in of_token[k]]
    assert len(of_target) == len(find_words(target))
    return np.eye(len(words))[of_target]


def reverse(count):
    return range(count)[::-1]


def shuffle(count):
    return random.Random(count).sample(range(count), count)
