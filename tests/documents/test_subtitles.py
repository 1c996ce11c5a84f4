"""Tests of subtitles: what is translated, what stays, and where lines end."""

import re

import hypothesis
import hypothesis.strategies as st
import pytest

from documents.formats import read_document, translation_steps
from documents.markup.translate_markup import run_steps
from documents.subtitles import wrap
from tests.helpers.known_alignment_translators import (
    identity,
    letters,
    permuted,
    reverse,
    word_for_word,
    word_swap,
)

TIMES = "00:00:01.000 --> 00:00:02.500"
TAG = re.compile(r"</?[a-z][^<>\n]*>|<[\d:.]+>|\{\\[^{}]*\}")
# Parts of the lines of cues.
OPENINGS = ["", "- ", "-", "— ", "♪ ", "# ", "<i>- ", "MAN: ", "{\\an8}", "<v Bob>"]
PARTS = [
    *("cat", "the dog", "one. Two", "{\\b1}", "{\\b0}", "<i>", "</i>", "<b>x y</b>"),
    *('<font color="red">two</font>', "<br>", "\\N", "<00:00:01.500>", "♪", "❤️"),
    *("5 kg", "a\u00a0b", "AT&T", "&amp;", "&lt;", "a < b", "I <3 you", "12", "-"),
    *("<c.loud.b>c</c>", "<ruby>d<rt>e</rt></ruby>", "猫が好き", "\u200fאב", "{name}"),
]
# What stands between cues, or in their first lines.
OTHERS = {
    "srt": ["7", "8\n9", "<", "{y:i}"],
    "vtt": ["NOTE the cat", "NOTE\na <i>b", "STYLE\n::cue(b) {color: red}", "an id"],
}
SETTINGS = ["", " X1:40 X2:600", " align:start position:10%,line-left"]


def texts():
    parts = st.lists(st.sampled_from(PARTS), max_size=5).map(" ".join)
    glued = st.lists(st.sampled_from(PARTS), max_size=3).map("".join)
    line = st.tuples(st.sampled_from(OPENINGS), parts | glued, st.sampled_from(" ♪"))
    return st.lists(line.map("".join), max_size=3)


@st.composite
def files(draw, format):
    """Writes a file; returns its lines, and for each whether it is of a text."""
    lines = [("WEBVTT - cats", False), ("", False)] if format == "vtt" else []
    for other in draw(st.lists(st.sampled_from(["", *OTHERS[format]]), max_size=5)):
        if format == "vtt" or other.isdigit():
            lines += [(line, False) for line in other.split("\n")]
            if format == "vtt" and other != "an id":
                lines.append(("", False))
        lines.append((TIMES + draw(st.sampled_from(SETTINGS)), False))
        lines += [(text, True) for text in draw(texts())]
        lines.append(("", False))
    return lines


def translate(content, format, translator):
    document = read_document(content, format)
    known = translator.knows_placeholders
    steps = translation_steps(document, translator.split, known)
    return run_steps(steps, translator).content


@pytest.mark.parametrize("format", ["srt", "vtt"])
@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(data=st.data())
def test_a_file_comes_back(format, data):
    lines = [line for line, _ in data.draw(files(format))]
    line_ends = st.sampled_from(["\n", "\r\n", "\r"])
    text = "".join(line + data.draw(line_ends) for line in lines)
    text = "\ufeff" * data.draw(st.booleans()) + text.rstrip("\r\n")
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
    if not text.startswith("\ufeff"):
        encoding = "utf-8"
    content = text.encode(encoding)

    for is_known in (False, True):
        assert translate(content, format, identity(is_known)) == content


@pytest.mark.parametrize("format", ["srt", "vtt"])
@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(data=st.data())
def test_swapped_words_lose_no_letter_and_no_tag(format, data):
    lines = data.draw(files(format))
    source = "\n".join(line for line, _ in lines)

    found = translate(source.encode(), format, word_swap()).decode()

    # Ends of lines in a text come where they fit.
    tags = [tag for tag in TAG.findall(source) if tag != "<br>"]
    assert sorted(t for t in TAG.findall(found) if t != "<br>") == sorted(tags)
    assert letters_of(found) == letters_of(source)
    texts = "\n".join(line for line, is_text in lines if is_text)
    assert words_of(read_document(source.encode(), format).text) == words_of(texts)
    kept = [line for line, is_text in lines if not is_text and line.strip()]
    assert [line for line in found.split("\n") if line in kept] == kept


def words_of(text):
    """Returns the letters of words, in order."""
    return list(filter(str.isalpha, TAG.sub("", text).replace("\\N", "")))


def letters_of(text):
    text = re.sub(r"<br>|\\N", "", text)
    return letters(text.replace("&amp;", "&").replace("&lt;", "<"))


@pytest.mark.parametrize("format", ["srt", "vtt"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is <i>very</i> tall", "TALL <i>VERY</i> IS HE"),
        ("{\\an8}A {\\b1}cat{\\b0} ran", "{\\an8}RAN {\\b1}CAT{\\b0} A"),
        ('<font color="#f00">A</font> cat', 'CAT <font color="#f00">A</font>'),
        ("<i>He is<br>tall", "<i>TALL IS HE"),
        ("He is tall</i>", "TALL IS HE</i>"),
        ("- Where is\nhe\n- Over there", "- HE IS WHERE\n- THERE OVER"),
        ("— Is he\n— He is", "— HE IS\n— IS HE"),
        ("-Is he\n-He is", "-HE IS\n-IS HE"),
        ("<i>- Is he</i>\n<i>- He is</i>", "<i>- HE IS</i>\n<i>- IS HE</i>"),
        (">> Is he\n>> He is", ">> HE IS\n>> IS HE"),
        ("MAN: Is he\nMR X: He is", "HE IS MAN:\nIS HE X: MR"),
        ("[MAN] go\n[DOG] woof", "GO [MAN]\nWOOF [DOG]"),
        ("♪ A cat\nran ♪\n♪ A dog ♪", "♪ RAN CAT A ♪\n♪ DOG A ♪"),
        ("A cat 😆", "CAT A 😆"),
        ("<v Bob>Is he\n<v Ann>He is", "<v Bob>HE IS\n<v Ann>IS HE"),
        ("one <00:00:01.500>two", "<00:00:01.500>TWO ONE"),
        (f"{'a' * 20} {'b' * 20}\nc", f"C {'B' * 20}\n{'A' * 20}"),
        (f"{'a' * 20} <i>{'b' * 20}</i> c", f"C <i>{'B' * 20}</i> {'A' * 20}"),
        (f"{'a' * 20}<br>{'b' * 20} c", f"C {'B' * 20}<br>{'A' * 20}"),
        ("A <i\ncat", None),
        ("12", "12"),
    ],
)
def test_the_words_of_each_speech_come_back_reversed(format, text, expected):
    file = f"1\n{TIMES}\n%s\n\n2\n{TIMES}\n\n3\n{TIMES}\nend of it\n"

    found = translate((file % text).encode(), format, permuted(reverse)).decode()

    assert found.endswith("IT OF END\n")
    if expected is not None:
        assert found == (file % expected).replace("end of it", "IT OF END")


def test_the_model_gets_neither_tags_nor_marks():
    seen = []

    def write(text):
        seen.append(text)
        return text

    text = "{\\an8}<i>♪ - One &amp; <b>two</b>\nthree ♪</i>\n— <c.x>Four</c> ☎"
    translate(f"{TIMES}\n{text}".encode(), "vtt", word_for_word(write))

    assert seen == ["One & two three", "Four"]


def test_notes_and_styles_of_webvtt_are_no_text_and_later_texts_of_subrip_are():
    text = f"WEBVTT\n\n{TIMES}\na\n\nNOTE a\nb\n\n{TIMES}\nc"

    found = [read_document(text.encode(), format).text for format in ("vtt", "srt")]

    assert found == ["a\nc", "a\nNOTE a b\nc"]


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("vtt", "<i>cat</i>", "<i>&lt; &amp;</i>"),
        ("srt", "<i>cat</i>", "<i>< &</i>"),
        # Its file has entities.
        ("srt", "cat &lt;b>", "&lt; &amp; &lt;b>"),
    ],
)
def test_a_translation_is_escaped_where_the_format_has_entities(format, text, expected):
    translator = word_for_word(lambda text: text.replace("cat", "< &"))

    found = translate(f"{TIMES}\n{text}".encode(), format, translator)

    assert found.decode() == f"{TIMES}\n{expected}"


def test_subtitles_without_tags_are_plain_text():
    for text, format in (("a & b", None), ("<i>a", "srt"), ("a &amp; b", "vtt")):
        assert read_document(f"{TIMES}\n{text}".encode(), "srt").format == format


@pytest.mark.parametrize("format", ["text", "html", "xml", "markdown", "srt", "vtt"])
def test_a_byte_order_mark_and_lone_carriage_returns_stay(format):
    text = f"<p>\r{TIMES}\rone two\r\rthree\r\r</p>\r"
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        content = f"\ufeff{text}".encode(encoding)
        assert translate(content, format, identity()) == content
        found = translate(content, format, word_for_word(str.swapcase))
        assert found != content
        assert found.decode(encoding).lower() == f"\ufeff{text}".lower()


@pytest.mark.timeout(60)  # In quadratic time it takes minutes.
@pytest.mark.parametrize(
    "part",
    ["<", ">", "‹>", "<i>", "{\\", "♪", " ", "- ", "\\N", "&", "<rt>", "[", "a:", "🙂"],
)
def test_takes_linear_time(part):
    content = f"{TIMES}\n{part * 10**5} x {part * 10**5}".encode()
    document = read_document(content, "srt")

    assert document.fill(document.text) == content
    assert b"x" in document.fill(document.text + "y")


@pytest.mark.parametrize(
    "part",
    [
        "https://www.example-site.org/a-very-long-path/of-many-parts/and-more",
        "{ $name_of_a_variable }",
        "well-known-and-much-loved",
        "{{ a | b }}<i>c</i>\1",
    ],
)
def test_a_line_breaks_in_no_url_and_no_variable(part):
    for count in range(9):
        text = (
            "word " * count
            + f"{part} and more words after it, until the very end of it"
        )

        lines = wrap(text, "\n").split("\n")

        assert " ".join(lines) == text
        assert len(lines) > 1
        assert any(part in line for line in lines)
