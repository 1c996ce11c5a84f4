"""Tests of `documents.markup.translate_markup`: every tag comes back once."""

import collections
import html
import re

import lxml.etree
import pytest

from documents.markup.translate_markup import translate_markup
from tests.helpers.marked_documents import (
    PROTECTED_TEXTS,
    Writer,
    permuted,
    reverse,
    shuffle,
)

# The texts of PROTECTED_TEXTS.
TEXTS = [re.sub("<.*?>", "", html.unescape(leaf)) for leaf in PROTECTED_TEXTS]


def parse(text):
    """Reads XHTML by another parser, with HTML's names of characters."""
    return lxml.etree.fromstring(text.replace("&eacute;", "é"))


def elements(tree):
    """Returns tag and number of each element, with those of its parent."""
    return collections.Counter(
        (str(e.tag), e.get("id"), e.getparent() is not None and e.getparent().get("id"))
        for e in tree.iter()
    )


def words_of(element):
    return sorted("".join(element.itertext()).upper().replace(".", " ").split())


def check_structure(source, result):
    """Asserts that all tags and words are there, and nest as they did."""
    before, after = parse(source), parse(result)
    assert elements(after) == elements(before)
    texts = ["".join(tree.itertext()).lower() for tree in (before, after)]
    for leaf in TEXTS:  # Shuffled, parts of some may look like another.
        assert texts[1].count(leaf) >= texts[0].count(leaf)
        texts = [text.replace(leaf, " ") for text in texts]
    words = [sorted(re.findall(r"\bw\d+é?\b", text)) for text in texts]
    assert words[0] == words[1]
    return before, after


def check_spans(before, after):
    """Asserts that each tag holds the translations of its words, and only."""
    by_number = {e.get("id"): e for e in after.iter() if e.get("id")}
    for element in before.iter():
        if element.get("id"):
            found = by_number[element.get("id")]
            assert words_of(found) == words_of(element)


@pytest.mark.parametrize("format", ["html", "xml"])
def test_every_tag_comes_back_once_and_around_its_words(format):
    for seed in range(40):
        for crossing in (False, True):
            source = Writer(seed).document(crossing)
            if format == "xml":
                source = source.replace("&eacute;", "&#233;")
            for order in (reverse, shuffle):
                result = translate_markup(source, format, permuted(order)).content
                before, after = check_structure(source, result)
                if order is reverse and not crossing:
                    check_spans(before, after)
