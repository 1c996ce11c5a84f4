"""Every tag comes back once, around the translations of its words."""

import collections
import html
import itertools
import re

import lxml.etree
import pytest
from hypothesis import given, settings, strategies as st

from documents.markup.translate_markup import translate_markup
from tests.helpers.known_alignment_translators import permuted, reverse, shuffle

LEAVES = ("<code>x1 y</code>", "https://a.org/b?c=1&amp;d", "{name}", "5 kg")
TEXTS = [re.sub("<.*?>", "", html.unescape(leaf)) for leaf in LEAVES]
OTHERS = st.sampled_from([*LEAVES, "<img/>", "<!-- c -->", "<wbr/>"])
# Just inside a tag.
BLANKS = st.sampled_from(["", "", "", " ", "\n  ", "&#32;", "&#160;"])


def tagged(names, inner):
    """Writes tags around what is drawn from `inner`."""
    parts = st.tuples(BLANKS, inner, BLANKS).map("".join)
    return st.builds("<{0}>{1}</{0}>".format, st.sampled_from(names), parts)


@st.composite
def documents(draw, words):
    """Writes XHTML whose words occur once, and whose tags have numbers."""
    text = st.lists(st.sampled_from(words), min_size=1, max_size=4).map(" ".join)
    text |= st.tuples(text, OTHERS, text).map(" ".join)
    inline = st.recursive(
        text,
        lambda inner: st.lists(
            text | tagged("abiu", inner), min_size=1, max_size=3
        ).map(" ".join),
        max_leaves=9,
    )
    sentences = st.lists(inline.map("{}.".format), min_size=1, max_size=3)
    block = sentences.map(" ".join)
    nested = st.tuples(block, tagged(["li", "td"], block)).map("\n".join)
    blocks = st.lists(tagged(["div", "p"], nested) | tagged(["p"], block), min_size=1)
    numbers = itertools.count()

    def number(found):
        name = found[0]
        return (
            f"{name}{next(numbers)}" if name == "w" else f"{name} id='{next(numbers)}'"
        )

    body = "\n".join(draw(blocks))
    return re.sub(r"\bw\b|<\w+(?=>)", number, f"<body>{body}</body>")


def elements(tree):
    """Returns tag and number of each element, with those of its parent."""
    return collections.Counter(
        (str(e.tag), e.get("id"), e.getparent() is not None and e.getparent().get("id"))
        for e in tree.iter()
    )


def words_of(element):
    return sorted("".join(element.itertext()).upper().replace(".", " ").split())


@pytest.mark.parametrize("format", ["html", "xml"])
@pytest.mark.parametrize("words", [["w", "wé", "w&#233;"], ["w", "w", "w."]])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_tag_comes_back_once_and_around_its_words(format, words, data):
    source = data.draw(documents(words))
    before = lxml.etree.fromstring(source)
    for order in (reverse, shuffle):
        found = translate_markup(source, format, permuted(order)).content
        after = lxml.etree.fromstring(found)

        assert elements(after) == elements(before)
        texts = ["".join(tree.itertext()).lower() for tree in (before, after)]
        for leaf in TEXTS:  # Shuffled, parts of some may look like another.
            assert texts[1].count(leaf) >= texts[0].count(leaf)
            texts = [text.replace(leaf, " ") for text in texts]
        numbered = [sorted(re.findall(r"\bw\d+é?\b", text)) for text in texts]
        assert numbered[0] == numbered[1]
        # Of a tag that reaches into the next sentence the words are not known.
        if order is reverse and "w." not in words:
            same = {e.get("id"): e for e in after.iter() if e.get("id")}
            for element in before.iter():
                if element.get("id"):
                    assert words_of(same[element.get("id")]) == words_of(element)
