"""Tests of which parts of a text stay unchanged."""

import pytest

from text_processing.placeholders import MESSAGE, find_untranslatable_spans


def find_parts(text):
    return [text[start:end] for start, end in find_untranslatable_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.org/b_(c)?d=1.", ["https://a.org/b_(c)?d=1"]),
        ("www.a.org, me@b.co.uk", ["www.a.org", "me@b.co.uk"]),
        (
            "https://a.org/{id}, www.b.org/{x}/y.",
            ["https://a.org/{id}", "www.b.org/{x}/y"],
        ),
        ("5 kg, 3.5 km/h, −4 °C, 7 cats", ["5 kg", "3.5 km/h", "−4 °C"]),
        ("€ 5 or 1,000 € at 7 minutes", ["€ 5", "1,000 €"]),
        ("⦅0⦆ a\u200b\u200d⦅1⦆", ["⦅0⦆", "⦅1⦆"]),
        # Templates.
        ("{0} {name!r} {x.y[0]:.2f}, {}", ["{0}", "{name!r}", "{x.y[0]:.2f}", "{}"]),
        ("{{y}}, {{ a | b }} {{{c}}}", ["{{y}}", "{{ a | b }}", "{{{c}}}"]),
        ("{{#if x}}a{{/if}} {{ {a: 1} }}", ["{{#if x}}", "{{/if}}", "{{ {a: 1} }}"]),
        (
            "{% if x %}a{% endif %} {# c d #}",
            ["{% if x %}", "{% endif %}", "{# c d #}"],
        ),
        ("${x}: ${ a.b } #{c} %{d}", ["${x}", "${ a.b }", "#{c}", "%{d}"]),
        ("$name, $a.b $c->d $E$.", ["$name", "$a.b", "$c->d", "$E$"]),
        (
            "$t(key, x) @:ref. @.lower:a.b @:(c)",
            ["$t(key, x)", "@:ref"] + ["@.lower:a.b", "@:(c)"],
        ),
        ("{n, number, #.#} {0:d MMM}", ["{n, number, #.#}", "{0:d MMM}"]),
        ("{ $name } { -brand }", ["{ $name }", "{ -brand }"]),
        ("<0>a</0> <1/>", ["<0>", "</0>", "<1/>"]),
        ("a <%= b %> *|C:D|* %%e%%", ["<%= b %>", "*|C:D|*", "%%e%%"]),
        ("a {#b .c}, {: .d e=5}{f=6 g}", ["{#b .c}", "{: .d e=5}", "{f=6 g}"]),
        (":name (:id) :cat:", [":name", ":id", ":cat:"]),
        # Formats of printf and its kin.
        ("%s %5.2f %(a)d %-5.2f. %ld", ["%s", "%5.2f", "%(a)d", "%-5.2f", "%ld"]),
        ("%1$@ %@ %#@n@ %<a>s %*d", ["%1$@", "%@", "%#@n@", "%<a>s", "%*d"]),
        ("%d%s %dpx 100%% 5 %d 5 ${a}", ["%d%s", "%d", "100%%", "%d", "${a}"]),
        ("%1 of %L2, %name%", ["%1", "%L2", "%name%"]),
    ],
)
def test_finds_what_is_the_same_in_every_language(text, expected):
    assert find_parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("En 2020 l'eau; 1990 s’est; el 2020 ha sido", []),
        ("note:this, e-mail: bob, at 10:30, 3:4", []),
        ("std::vector, a: b, « oui » : non", []),
        ("$5, 100 % sure, 100% sure, 50 %of it", ["$5", "100 %", "100%"]),
        ("A$AP has US$ and $ and $$", []),
        ("{see below} {a, b} I <3 you, 2 < 3 > 1", []),
        ("bob@x, @bob, #tag, 5 <% 6, {a: b}, 2 *| 3", []),
    ],
)
def test_ordinary_text_has_no_variables(text, expected):
    assert find_parts(text) == expected


@pytest.mark.parametrize("kind", ["plural", "selectordinal", "select", "choice"])
def test_messages_in_braces_are_found(kind):
    assert MESSAGE.search("You have {n, " + kind + ", one {a} other {b}}.")
    assert not MESSAGE.search("{n, number} {plural, of: x}")


STARTS = (
    "% %0 %( %(a %% %{a {{ {{a {{{a} {% {# ${ { {a {0, {n, } }{ $ $t( $a. @: @.a :a"
    " <0 <% *| %%a {: {#a {a= https://{ www.{a https://www. ♪ (("
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("start", STARTS.split())
@pytest.mark.parametrize("rest", ["0", " ", "a"])
def test_takes_linear_time(start, rest):
    find_untranslatable_spans(start * 30_000 + rest * 100_000)
