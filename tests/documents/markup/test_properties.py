"""A translator that changes nothing gives back every document as it was.

One that swaps words loses no letter and no tag, and puts tags around their words.
"""

import collections
import html
import itertools
import re

import hypothesis
import hypothesis.strategies as st
import lxml.etree
import pytest

from documents.markup.translate_markup import translate_markup
from tests.helpers.known_alignment_translators import (
    identity,
    letters,
    permuted,
    reverse,
    shuffle,
    word_for_word,
    word_swap,
)

IDENTITIES = identity(), identity(knows_placeholders=True)
SWAP = word_swap()
TAG = re.compile(r"<(?:!--.*?--|[^<>]*)>", re.S)

WORDS = st.sampled_from(
    [
        *("cat", "the dog", "Zoë", "H2O", "do-loop", "don't", "5 kg", "{0}"),
        *("THE BIG CAT", "one. Two", "a, b", "(see)", "end.", "猫が好き"),
        *("www.a.org", "¶", "→", "®", "🙂", "*", "4.", "3.5", "a\u00a0b"),
        *("\u200etwo", "\u2068a b\u2069", "a@b.org"),
        *("{see below}", "{ x }", "{{ y | z }}", "{% if x %}", "100 %%", "%1$@ %-5.2f"),
        *("$name", "#{x}", ":id", "@:a.b", "{n, plural, one {a} other {b. C}}", "5 %d"),
        *("x\u202f!", "\n", "\n  ", "  ", "\t", "e\u0301t\u0301", "snake_x"),
        *("👨\u200d👩\u200d👧", "I ❤\ufe0f it", "👍🏽", "♪", "ها", "ی"),
    ]
)
# Characters without width, which belong to what is before them.
MARKS = "\u200b\u200c\u200d\u200e\u200f\u00ad\u2060\ufeff\ufe0f\u0301"
WORDS |= st.sampled_from(MARKS)
REFERENCES = st.sampled_from(
    ["&amp;", "&#233;", "&#32;", "&#10;", "&#160;", "&#8203;", "&#x301;", "&#xad;"]
)
HTML_TEXTS = (
    WORDS
    | REFERENCES
    | st.sampled_from(["&lt;b&gt;", "AT&T", "a < b", "&nbsp;", "&#xe9;t", "&eacute"])
    | st.sampled_from(["&rlm;", "&shy;", "&zwnj;", "&zwj;", "&NoBreak;"])
)
GLUE = st.sampled_from(["", "", " "])


def element(names, inner):
    return st.tuples(st.sampled_from(names), inner).map(
        lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0].split()[0]}>"
    )


def sequence(parts):
    return st.lists(st.tuples(GLUE, parts), max_size=5).map(
        lambda found: "".join(map("".join, found))
    )


VOIDS = ["<img>", "<!-- c -->", "<wbr>", "<img alt='the cat'>", "<img alt=cat>"]
INLINE = ["b", "i", "a href='x>y'", "code", "sub", 'span title="a &amp; b"']
INLINE += ["ruby", "rt", "rt", "rp"]
BLOCK = ["p", "div", "li", "h1", "p translate=no", "pre", "td"]
INLINE_HTML = st.recursive(
    HTML_TEXTS | st.sampled_from(VOIDS),
    lambda inner: element(INLINE, sequence(inner)),
    max_leaves=12,
)
HTML = sequence(
    element(BLOCK, sequence(INLINE_HTML))
    | INLINE_HTML
    # Tags without their other half.
    | st.sampled_from(["</b>", "<i>", "</p>", "<p>", "<br>", "<b>x<i>y</b>z</i>"])
    | st.sampled_from(["<rt>", "</rt>", "<ruby>a<rt>b c<rp>)</ruby>"])
)
XML_TEXTS = WORDS | REFERENCES | st.sampled_from(["&lt;", "<c/>", "<!--c-->"])
XML = st.recursive(
    XML_TEXTS,
    lambda inner: element(
        ["a", "b", "p xml:space='preserve'", "s translatable='false'", "code", "fn"],
        sequence(inner),
    ),
    max_leaves=12,
).map(lambda text: f"<doc>{text}</doc>")
MARKDOWN_PARTS = st.sampled_from(
    [
        *("*cat*", "**the dog**", "_a b_", "`do`-loop", "`x y`s", "[a b](c)"),
        *("[seven][r]", "[r]", "![alt text](i.png)", "<b>cat</b>", "\\*", "&amp;"),
        *("2 * 3", "snake_case_x", "[^1]", "$x^2$", "~~gone~~", "un**bel**iev"),
        *("cat", "the dog", "don't stop.", "a\u00a0b", "<http://a.b>", "$5", "x:"),
        *("\n", "  \n", "https://a.org/b_c", "1. x", "C#", "a | b", "[x] y"),
        *("<b> a cat </b>", "**cat**\u200b", "*\u2060cat*\u200f", "_❤\ufe0f_", "&shy;"),
    ]
)
LINE = st.lists(MARKDOWN_PARTS, min_size=1, max_size=5).map(" ".join)
MARKDOWN = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("", "# ", "- ", "- [x] ", "> ", "> [!NOTE]\n> ", "1. "),
                *("Term\n: ", "[^1]: ", "    ", "<div>\n", "!!! a\n    ", "{: .a b}\n"),
                "| a\\|b | c |\n|-|-|\n| ",
            ]
        ),
        LINE,
    ).map("".join),
    max_size=5,
).map(lambda blocks: "\n\n".join([*blocks, "[r]: /u", "[^1]: A note."]))


def check_identity(source, format):
    for translator in IDENTITIES:
        assert translate_markup(source, format, translator).content == source


SETTINGS = hypothesis.settings(max_examples=60, deadline=None)


@pytest.mark.parametrize(
    ("format", "sources"), [("html", HTML), ("xml", XML), ("markdown", MARKDOWN)]
)
@SETTINGS
@hypothesis.given(data=st.data())
def test_a_document_comes_back(format, sources, data):
    check_identity(data.draw(sources), format)


@pytest.mark.parametrize(
    "source",
    [
        "<p>Mail <code>foo</code>@bar.org now <b>please</b></p>",
        "<p><code>admin</code>@example.com <b>is</b> the address</p>",
        "<p>(z)<i></b>  One</p>",
        "<p>cat<b>\u200etwo</b></p>",
        "<p>one &lrm;two <b>three</b></p>",
        "<p>_<code>foo</code>|<code>bar</code>_ and <code>foo</code> bar</p>",
    ],
)
def test_what_touches_a_tag_comes_back(source):
    check_identity(source, "html")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>red <b>car </b></p>", "<p><b>car</b> red </p>"),
        ("<p><b> red</b> car</p>", "<p> car <b>red</b></p>"),
        ("<p><b> red </b> <i> car </i></p>", "<p> <i>car</i> <b>red</b> </p>"),
        ("<b>&nbsp;red</b> car. One", "&nbsp;car <b>red</b>. One"),
        ("one <b>car. </b>Two", "<b>car</b> one. Two"),
        ("red <b>car&#32;</b><u> </u>", "<b>car</b> red&#32;<u> </u>"),
    ],
)
def test_a_tag_goes_with_its_word_wherever_blanks_stand(source, expected):
    assert translate_markup(source, "html", SWAP).content == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A <b>cat</b>&rlm;, dog.", "A <b>CAT</b>&rlm;, DOG."),
        ("<b>foo</b>\u200b<i>bar</i>", "<b>FOO</b>\u200b<i>BAR</i>"),
        ("<b>cat</b>&NoBreak;<i>dog</i>", "<b>CAT</b>&NoBreak;<i>DOG</i>"),
        ("a <b>cat</b>\u0301 dog", "A <b>CAT</b>\u0301 DOG"),
        ("A <b>cat</b>&shy;, dog", "A <b>CAT</b>&shy;, DOG"),
    ],
)
def test_characters_without_width_stay_out_of_tags(source, expected):
    translator = word_for_word(str.upper)

    assert translate_markup(source, "html", translator).content == expected


def parts_of(source):
    """Returns the tags, and the sorted letters of the texts."""
    source = re.sub(r"(alt|title)=('[^']*'|\"[^\"]*\"|\w+)", r"\1", source)
    tags = collections.Counter(TAG.findall(source))
    return tags, letters(html.unescape(TAG.sub("", source)).lower())


@pytest.mark.parametrize(("format", "sources"), [("html", HTML), ("xml", XML)])
@SETTINGS
@hypothesis.given(data=st.data())
def test_swapped_words_lose_no_letter_and_no_tag(format, sources, data):
    source = data.draw(sources)

    found = translate_markup(source, format, SWAP).content

    assert parts_of(found) == parts_of(source)


LEAVES = ("<code>x1 y</code>", "https://a.org/b?c=1&amp;d", "{name}", "5 kg")
LEAF_TEXTS = [re.sub("<.*?>", "", html.unescape(leaf)) for leaf in LEAVES]
LEAVES_AND_VOIDS = st.sampled_from([*LEAVES, "<img/>", "<!-- c -->", "<wbr/>"])
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
    text |= st.tuples(text, LEAVES_AND_VOIDS, text).map(" ".join)

    def nest(inner):
        parts = st.lists(text | tagged("abiu", inner), min_size=1, max_size=3)
        return parts.map(" ".join)

    inline = st.recursive(text, nest, max_leaves=9)
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
    """Counts the tag and the number of each element, with its parent's number."""
    found = [(e, e.getparent()) for e in tree.iter()]
    return collections.Counter(
        (str(e.tag), e.get("id"), parent is not None and parent.get("id"))
        for e, parent in found
    )


def words_of(element):
    return sorted("".join(element.itertext()).upper().replace(".", " ").split())


@pytest.mark.parametrize("format", ["html", "xml"])
@pytest.mark.parametrize("words", [["w", "wé", "w&#233;"], ["w", "w", "w."]])
@hypothesis.settings(SETTINGS, max_examples=30)
@hypothesis.given(data=st.data())
def test_every_tag_comes_back_once_and_around_its_words(format, words, data):
    source = data.draw(documents(words))
    before = lxml.etree.fromstring(source)
    for order in (reverse, shuffle):
        found = translate_markup(source, format, permuted(order)).content
        after = lxml.etree.fromstring(found)

        assert elements(after) == elements(before)
        texts = ["".join(tree.itertext()).lower() for tree in (before, after)]
        for leaf in LEAF_TEXTS:  # Shuffled, parts of some may look like another.
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
