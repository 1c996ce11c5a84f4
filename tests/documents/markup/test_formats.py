"""Tests of the formats: what is text, what is within a sentence, what stays."""

import html

import hypothesis
import hypothesis.strategies as st
import pytest

from documents.markup.html_scanner import read_html
from documents.markup.markup_tokens import Kind
from documents.markup.translate_markup import FORMATS, markup_steps, translate_markup
from tests.helpers.known_alignment_translators import (
    dictionary,
    identity,
    permuted,
    reverse,
    split_sentences,
    word_for_word,
)

# Parts of documents, separated by bars.
HTML_PARTS = (
    "<b>¦</b>¦<p>¦</p>¦<br/>¦<img src='a>b'>¦<code>¦x y¦</code>¦&amp;¦&eacute"
    "¦&#233;¦&#¦&¦<¦< b¦<!-- c -->¦<script>a<b</script>¦<p translate=no>¦</"
    "¦]]>¦<![CDATA[x]]>¦Zoë¦<span class='a notranslate'>¦</span>¦\n"
    "¦<?php x ?>¦<textarea>¦<div translate=yes>¦</div>¦{0}¦a@b.org¦. "
    "¦<my-tag/>¦<svg/>"
)
MARKDOWN_PARTS = (
    "*¦**¦_¦`¦``¦~~¦[¦](¦)¦![¦\n¦\n\n¦> ¦- ¦1. ¦# "
    "¦| a | b |\n|---|---|\n| c | d |\n¦<b>¦</b>¦\\¦&amp;¦word¦two words¦ "
    "¦    ¦\t¦[r]: /u\n¦[r]¦<http://a.b>¦ü¦***¦---\n¦```\ncode\n```\n¦<div>\n"
    "¦\r\n¦  \n¦|¦\\|¦==¦+++\n¦!!! a\n    ¦:::¦{: .a}\n¦{% comment %}¦{% endcomment %}"
)


@pytest.mark.parametrize(
    ("format", "parts"), [("html", HTML_PARTS), ("markdown", MARKDOWN_PARTS)]
)
@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(data=st.data())
def test_tokens_are_all_of_the_source(format, parts, data):
    source = "".join(
        data.draw(st.lists(st.sampled_from(parts.split("¦")), max_size=12))
    )

    tokens = FORMATS[format].read(source)

    assert "".join(source[t.start : t.end] for t in tokens) == source
    for token in tokens:
        if token.kind is Kind.TEXT and format == "html":
            raw = source[token.start : token.end]
            assert token.text in (raw, html.unescape(raw))
    assert translate_markup(source, format, identity()).content == source


@pytest.mark.parametrize(
    ("format", "source", "expected"),
    [
        (
            "html",
            "<p>one <b>two</b></p>\n<pre>a  b</pre><p translate=no>x <b>y</b>"
            "</p><p>three <code>x=1</code><br>four<script>if (a<b) c</script>",
            "<p><b>TWO</b> ONE</p>\n<pre>a  b</pre><p translate=no>x <b>y</b>"
            "</p><p><code>x=1</code> THREE<br>FOUR<script>if (a<b) c</script>",
        ),
        (
            "html",
            "<p translate=no>no <span translate=yes>a b</span> no</p>"
            "<i class='a notranslate'>kept</i> not",
            "<p translate=no>no <span translate=yes>B A</span> no</p>"
            "NOT <i class='a notranslate'>kept</i>",
        ),
        # End tags that are left out.
        (
            "html",
            "<ul><li class=notranslate>a b<ul><li>c d</ul><li>e f</ul>g h"
            "<p translate=no>i j<h1>k l</h1><div><p translate=no>m n</div>o p",
            "<ul><li class=notranslate>a b<ul><li>c d</ul><li>F E</ul>H G"
            "<p translate=no>i j<h1>L K</h1><div><p translate=no>m n</div>P O",
        ),
        (
            "html",
            "<table><tr><td translate=no>a b<td>c d<tr translate=no><td>e f"
            "<tr><td>g h</table><dl><dt translate=no>i j<dd>k l</dl>m n",
            "<table><tr><td translate=no>a b<td>D C<tr translate=no><td>e f"
            "<tr><td>H G</table><dl><dt translate=no>i j<dd>L K</dl>N M",
        ),
        # Ruby is a part of its sentence, and its texts stay.
        (
            "html",
            "<p>one <ruby>東京<rp>(</rp><rt title='x y'>a <b>b</b> c</rt><rp>)</rp>"
            "</ruby> two</p><ruby>three<rt>d e<rp>)</ruby> four",
            "<p>TWO <ruby>東京<rp>(</rp><rt title='Y X'>a <b>b</b> c</rt><rp>)</rp>"
            "</ruby> ONE</p>FOUR <ruby>THREE<rt>d e<rp>)</ruby>",
        ),
        (
            "xml",
            "<p>one <ruby>two<rt>a b</rt></ruby> three</p>",
            "<p>THREE <ruby>TWO<rt>a b</rt></ruby> ONE</p>",
        ),
        (
            "markdown",
            "one <ruby>two<rt>a b</rt></ruby> three",
            "THREE <ruby>TWO<rt>a b</rt></ruby> ONE",
        ),
        # Nested wrongly, and unknown names.
        (
            "html",
            "<b>one <i>two</b> three</i> R&D &no; a < b",
            "<b><i></b></i>B &lt; A &no; R&D THREE TWO ONE",
        ),
        ("html", "one<img> two <img>three", "<img>THREE TWO ONE<img>"),
        ("html", "<p>one <?= $a->b ?> two", "<p><?= $a->b ?> TWO ONE"),
        ("html", "<img alt='a b' translate=NO>", "<img alt='a b' translate=NO>"),
        (
            "html",
            "<p>one <svg><title>two</title></svg> three</p>",
            "<p>THREE <svg><title>two</title></svg> ONE</p>",
        ),
        (
            "xml",
            '<!DOCTYPE a [<!ENTITY e "x">]><a><t>one &e; <b>two<c/></b></t>'
            "<l><i>three</i> <i>four</i></l><![CDATA[<x>]]><code>y</code></a>",
            '<!DOCTYPE a [<!ENTITY e "x">]><a><t>&e; <b>TWO<c/></b> ONE</t>'
            "<l><i>THREE</i> <i>FOUR</i></l><![CDATA[<x>]]><code>y</code></a>",
        ),
        # The root of TTML, a footnote inside a sentence, and adjacent elements.
        (
            "xml",
            "<tt><p>one <b its:translate='no'>a</b> two<fn><p>three four</p></fn> five "
            "<xliff:g>b</xliff:g> six <m><i>seven</i><i>eight</i></m></p></tt>",
            "<tt><p>TWO <b its:translate='no'>a</b> ONE<fn><p>FOUR THREE</p></fn> "
            "<m><i>EIGHT</i> <i>SEVEN</i></m> SIX <xliff:g>b</xliff:g> FIVE</p></tt>",
        ),
        (
            "markdown",
            "---\ntitle: kept\n---\n# one **two** #\n\n> three *four\n> five* "
            "`code` \\* &amp; 1.\n\n```\nkept\n```\n\n    kept\n",
            "---\ntitle: kept\n---\n# **TWO** ONE #\n\n> . 1 &amp; \\* `code` "
            "*FIVE FOUR* THREE\n\n```\nkept\n```\n\n    kept\n",
        ),
        (
            "markdown",
            "+++\na = 'b'\n+++\n!!! b \"one two\"\n    three [four\n    five]\n\n"
            "::: tip a\nsix seven\n:::\n{% highlight c %}\n\na b\n{% endhighlight %}\n"
            "- eight nine\n  {: .a b}\n\n{{< a b >}}\n[four five]: /u",
            "+++\na = 'b'\n+++\n!!! b \"TWO ONE\"\n    [FIVE FOUR][four five] THREE"
            "\n\n::: tip a\nSEVEN SIX\n:::\n{% highlight c %}\n\na b\n{% endhighlight "
            "%}\n- NINE EIGHT\n  {: .a b}\n\n{{< a b >}}\n[four five]: /u",
        ),
        # A link by its text keeps its target.
        (
            "markdown",
            "| a b | [seven][x] |\n|---|---|\n| [x y][] [x] | ![a](b) ~~c~~ |"
            "\n\n[x]: /x 'kept'\n[x y]: /y",
            "| B A | [SEVEN][x] |\n|---|---|\n| [X][x] [Y X][x y] | ![A](b) "
            "~~C~~ |\n\n[x]: /x 'kept'\n[x y]: /y",
        ),
        (
            "markdown",
            "- one\r\n  two **three**\r\n- 1. four *five six. seven* eight\r\n",
            "- **THREE** TWO ONE\r\n- 1. . *SIX FIVE FOUR EIGHT SEVEN*\r\n",
        ),
    ],
)
def test_what_is_no_sentence_stays_letter_for_letter(format, source, expected):
    found = translate_markup(source, format, permuted(reverse)).content

    assert found == expected


def test_a_model_does_not_read_the_texts_of_ruby():
    source = "One <ruby>東京<rp>(</rp><rt>T&ocirc;kyo</rt><rp>)</rp></ruby> tower. Two"

    request = next(markup_steps(source, "html", split_sentences))

    assert request.inputs == ["One 東京 tower.", "Two"]


def test_a_declaration_divides_a_text_and_a_comment_does_not():
    tokens = list(read_html("one<!DOCTYPE html>two<!-- c -->three"))

    assert [token.text for token in tokens if token.kind is Kind.TEXT] == [
        *("one", "two", "three")
    ]
    assert [token.is_block for token in tokens if token.kind is Kind.VOID] == [
        *(True, False)
    ]


def test_the_text_after_character_data_of_a_drawing_is_text():
    tokens = read_html("<svg><![CDATA[ a>b ]]><text>c</text></svg>")

    assert [token.text for token in tokens if token.kind is Kind.TEXT] == ["c"]


@pytest.mark.parametrize("start", ["one", "four"])
def test_escaped_bars_of_a_cell_stay_where_they_are(start):
    source = f"| h |\n|---|\n| {start} \\| two \\| three \\| *six* |\n"

    found = translate_markup(source, "markdown", word_for_word(str.upper)).content

    assert found == source.upper()


@pytest.mark.parametrize(
    ("format", "source", "words", "expected"),
    [
        # A date that would be a list.
        ("markdown", "May 1 is free", {"May 1": "1. Mai"}, "1\\. Mai is free"),
        (
            "markdown",
            "| ![a cat](x) b |\n|---|\n",
            {"cat": "c|t"},
            "| ![a c\\|t](x) b |\n|---|\n",
        ),
        ("html", "<p title=one class=x>", {"one": ""}, '<p title="" class=x>'),
    ],
)
def test_a_translation_becomes_no_markup(format, source, words, expected):
    assert translate_markup(source, format, dictionary(words)).content == expected
