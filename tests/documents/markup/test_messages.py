"""Whatever a model does, variables of templates and messages come back.

A translator drops, doubles, changes and swaps words and variables.
"""

import collections
import html
import random
import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from documents.markup.translate_markup import SentenceTranslator, translate_markup
from documents.markup.word_alignment import find_words
from tests.helpers.known_alignment_translators import split_sentences, word_for_word
from text_processing.placeholders import find_untranslatable_spans

# The names in capitals are replaced by others.
FAMILIES = {
    "Mustache, Handlebars, Jinja": (
        "{{NAME}} ¦{{ NAME }}¦{{{NAME}}}¦{{#NAME}}¦{{/NAME}}¦{{ NAME | OTHER }}"
        "¦{{> NAME}}¦{{ NAME.OTHER }}¦{{- NAME -}}¦{% if NAME %}¦{% endif %}"
        '¦{% trans "OTHER" %}¦{# NAME OTHER #}¦{{ {OTHER: NAME} }}'
    ),
    "str.format, .NET, Fluent, ICU": (
        "{}¦{NAME}¦{0}¦{NAME.OTHER!r:>10}¦{1:.2f}¦{0:d MMM yyyy}¦{ NAME }¦{ $NAME }"
        "¦{ -NAME }¦{NAME, number}¦{NAME, date, short}¦{0, number, #,##0.0}"
    ),
    "printf, Python, Apple, Qt": (
        "%s¦%d¦%5.2f¦%-5.2f¦%05d¦%1$s¦%2$-10s¦%ld¦%llu¦%zu¦%*d¦%.*f¦%x¦%@¦%1$@¦%#@NAME@"
        "¦%(NAME)s¦%(OTHER)05.1f¦%%¦%d%s¦%<NAME>s¦%1¦%L2¦%n¦%NAME%"
    ),
    "shell, JavaScript, Ruby, Java": (
        "${NAME}¦${ NAME.OTHER }¦$NAME¦$NAME.OTHER¦$NAME->OTHER¦$NAME$¦#{NAME}¦%{NAME}"
    ),
    "ERB, Mailchimp, Salesforce, Kramdown": (
        "<%= NAME %>¦<% if NAME > OTHER %>¦*|NAME|*¦*|IF:NAME|*¦%%NAME%%"
        '¦{#NAME .OTHER}¦{: .NAME}¦{ NAME="OTHER a" }'
    ),
    "i18next, Lingui, Laravel, Vue I18n": (
        "<0>¦</0>¦<1/>¦$t(NAME)¦:NAME¦@:NAME¦@:NAME.OTHER¦@.lower:NAME¦@:(NAME)"
    ),
}
NAMES = st.sampled_from(["a", "ab", "abC", "ab_c", "user_name"])
WORDS = st.sampled_from(
    ["you", "have", "messages.", "The", "cat,", "don't", "猫", "–", "now:", "?"]
)
FORMATS = {
    "html": "<p>%s <b>now</b></p>",
    "markdown": "%s **now**",
    "xml": "<a><s>%s</s><s>a <b>b</b></s></a>",
    "srt": "%s <i>now</i>",
    "vtt": "%s <i>now</i>",
}


@st.composite
def messages(draw, family):
    """Writes a message of words and variables with blanks between them."""
    variables = st.sampled_from(FAMILIES[family].split("¦"))
    parts = draw(st.lists(WORDS | variables, min_size=1, max_size=12))
    parts = [part.replace("NAME", draw(NAMES)) for part in parts]
    filled = [part.replace("OTHER", draw(NAMES)) for part in parts]
    return " ".join(" ".join(filled).split())


def careless(seed: int, knows_placeholders: bool) -> SentenceTranslator:
    """Returns a translator that drops, doubles, changes and swaps words.

    It knows which word each is a translation of, unless it changed it.
    """

    def write(text):
        draw = random.Random(f"{seed} {text}")
        found = []
        for number, word in enumerate(find_words(text)):
            written = text[word.start : word.end]
            changed = written.swapcase() if word.is_word else "x"
            found += draw.choice(
                [
                    *([(written, number)],) * 3,
                    *([], [(written, number)] * 2, [(changed, number)]),
                    [("new", -1), (written, number)],
                ]
            )
        for place in range(1, len(found)):
            if draw.random() < 0.3:
                found[place - 1 : place + 1] = found[place - 1 : place + 1][::-1]
        return found

    def translate(texts):
        return [(" ".join(word for word, _ in write(text)), False) for text in texts]

    def weights_of(source, target):
        # Of each target word, the number of its source word.
        words, numbers, place = find_words(target), {}, 0
        for written, number in write(source):
            start = target.find(written, place)
            if start >= 0:
                place = start + len(written)
                numbers.update(dict.fromkeys(range(start, place), number))
        weights = np.zeros((len(words), len(find_words(source))))
        for row, word in enumerate(words):
            if numbers.get(word.start, -1) >= 0:
                weights[row, numbers[word.start]] = 1
        return weights

    def align(pairs):
        return [weights_of(*pair) for pair in pairs]

    return SentenceTranslator(split_sentences, translate, align, knows_placeholders)


def count_variables(text):
    spans = find_untranslatable_spans(text)
    return collections.Counter(text[start:end] for start, end in spans)


@pytest.mark.parametrize("family", FAMILIES)
@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    data=st.data(), seed=st.integers(0, 2**32), knows_placeholders=st.booleans()
)
def test_each_variable_comes_back_as_often_as_it_was(
    family, data, seed, knows_placeholders
):
    message = data.draw(messages(family))
    format = data.draw(st.sampled_from(list(FORMATS)))
    is_escaped = format not in ("srt", "markdown")
    # Ruby's `%<name>s` has a tag where `<` is not escaped, and `*|name|*` has emphasis.
    hypothesis.assume(is_escaped or not re.search("%<|[*]", message))
    escape = html.escape if is_escaped else str
    source = FORMATS[format] % escape(message)

    translator = careless(seed, knows_placeholders)
    found = translate_markup(source, format, translator).content

    if is_escaped:
        source, found = html.unescape(source), html.unescape(found)
    wanted = count_variables(source)
    counted = count_variables(found)
    assert {name: counted[name] for name in wanted} == wanted
    for brace in "{}":
        assert found.count(brace) == source.count(brace)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_variable_is_found_as_a_whole(family):
    for variable in FAMILIES[family].split("¦"):
        assert list(count_variables(f"a {variable.strip()} b")) == [variable.strip()]


@pytest.mark.parametrize(
    ("format", "source", "expected"),
    [
        ("html", "a %d b %d%s", "A %d %d%s B"),
        ("markdown", "a %d b %d%s", "A %d %d%s B"),
        # "B" attends to "y".
        ("markdown", "a `x y` %d%s c", "A %d%s `x y`"),
    ],
)
def test_a_variable_that_was_dropped_comes_back_beside_one_that_contains_it(
    format, source, expected
):
    translator = word_for_word(lambda text: "A %d%s B")

    assert translate_markup(source, format, translator).content == expected


def test_braces_of_ordinary_text_are_translated():
    translator = word_for_word(str.upper)

    found = translate_markup("one {two three} {{x}}", "markdown", translator).content

    assert found == "ONE {TWO THREE} {{x}}"


@st.composite
def icu_messages(draw, depth=1):
    """Writes an argument of ICU that has messages in it."""
    kind = draw(st.sampled_from(["plural", "select", "selectordinal"]))
    inner = st.sampled_from(
        ["# cats", "a <b>cat</b>", "{name}", "It''s '{'", "Two. One"]
    )
    if depth:
        inner |= icu_messages(depth - 1)
    cases = draw(st.lists(inner, min_size=1, max_size=3))
    keys = ["one", "=0", "other"][-len(cases) :]
    written = " ".join(
        f"{key} {{{case}}}" for key, case in zip(keys, cases, strict=True)
    )
    return f"{{{draw(NAMES)}, {kind}, {written}}}"


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(message=icu_messages(), seed=st.integers(0, 2**32))
def test_a_message_with_messages_in_it_is_left_as_it_is(message, seed):
    source = f"<p>You <i>have</i> {message}. See?</p><p title='{{n, select, a {{b}}}}'>"
    for is_known in (False, True):
        translator = careless(seed, is_known)
        assert translate_markup(source, "html", translator).content == source
