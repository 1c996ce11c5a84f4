"""Tests of what a document is translated with, and of the command."""

import io
import sys

import numpy as np
import pytest

from command_line.errors import InvalidDocumentError
from documents.character_encoding import decode, encode
from documents.markup.translate_markup import (
    AlignmentRequest,
    TranslationRequest,
    describe_counts,
    markup_steps,
    translate_markup,
)
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from tests.helpers.known_alignment_translators import (
    dictionary,
    identity,
    permuted,
    reverse,
    split_sentences,
    word_for_word,
)
from translate import __main__ as translate
from translate.document_translation import translate_document


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("b ⦅1⦆ a ⦅0⦆", "b <code>x</code> a {0}"),
        ("b ⦅1⦆ ⦅1⦆ a ⦅0⦆ ⦅7⦆", "b <code>x</code> a {0}"),
        ("b ⦅1⦆ a", "b {0} <code>x</code> a"),
    ],
)
def test_placeholders_come_back_once(written, expected):
    source = "<p>a {0} b <code>x</code></p>"
    asked = []

    def answer(text):
        asked.append(text)
        return written

    found = translate_markup(
        source, "html", word_for_word(answer, knows_placeholders=True)
    )

    assert asked == ["a ⦅0⦆ b ⦅1⦆"]
    assert found.content == f"<p>{expected}</p>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b>Ana</b>'s chair", "<b>Anna</b> chair"),
        ("<b>Ana's</b> chair", "<b>Anna</b> chair"),
        ("CO<sub>2</sub>-free chairs", "CO<sub>2</sub> chairs"),
        ("the lower<b>case</b> letter", "the upper<b>case</b> letter"),
        ("un<b>believ</b>able chairs", "<b>increíbles</b> chairs"),
    ],
)
def test_a_tag_in_a_word_splits_no_other_word(source, expected):
    words = {"Ana's": "Anna", "CO2-free": "CO2", "lowercase": "uppercase"}
    translator = dictionary(words | {"unbelievable": "increíbles"})

    assert translate_markup(source, "html", translator).content == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("See ![a cat](cat.png).", "See ![a c\\]t](cat.png)."),
        ("[![a cat][c]](cat)\n\n[c]: cat.png", "[![a c\\]t][c]](cat)\n\n[c]: cat.png"),
        # Its text is the name of its reference, or has markup.
        ("![a cat]\n\n[a cat]: u", "![a cat]\n\n[a cat]: u"),
        ("![a *cat*](cat.png)", "![a *cat*](cat.png)"),
    ],
)
def test_translates_the_texts_of_images_in_markdown(source, expected):
    translator = dictionary({"cat": "c]t"})

    assert translate_markup(source, "markdown", translator).content == expected


def test_a_sentence_that_is_cut_is_halved():
    def translate(texts):
        return [(text.upper()[:20], len(text) > 20) for text in texts]

    source = "<p>one two three, four <b>five six</b> seven eight nine</p>"
    translator = identity()._replace(translate=translate)

    found = translate_markup(source, "html", translator)

    assert found.content == (
        "<p>ONE TWO THREE, FOUR <b>FIVE SIX</b> SEVEN EIGHT NINE</p>"
    )
    assert found.counts["truncated"] == 0
    long = translate_markup(f"<p>{'a' * 30}</p>", "html", translator)
    assert list(describe_counts(long.counts)) == [
        "1 of 1 sentences were cut at the model's limit of tokens"
    ]


def test_refuses_formats_and_documents_that_are_none():
    with pytest.raises(ValueError, match="`format` must be one of html, xml"):
        translate_markup("a", "rtf", permuted(reverse))
    with pytest.raises(ValueError, match="well-formed XML.*line 1, column 8"):
        translate_markup("<a><b></a>", "xml", permuted(reverse))
    with pytest.raises(InvalidDocumentError, match="the document must be well-formed"):
        translate_document(permuted(reverse), b"<a>", "xml", "a.xml")


def test_a_sentence_may_have_many_leaves_but_no_bottomless_tags():
    many = "<p>a " + "{0} " * 200 + "</p>"
    found = translate_markup(many, "html", permuted(reverse))
    assert found.content.count("{0}") == 200
    with pytest.raises(ValueError, match="fewer than 200 tags.*at 597"):
        translate_markup("<b>" * 5000 + "a", "html", permuted(reverse))


@pytest.mark.parametrize(
    ("format", "data", "encoding"),
    [
        ("html", "é<meta charset='latin-1'>".encode("cp1252"), "cp1252"),
        ("xml", '<?xml encoding="utf-16"?><é/>'.encode("utf-16"), "utf-16"),
        ("markdown", "# é".encode("utf-8-sig"), "utf-8-sig"),
        ("xml", "<é/>".encode(), "utf-8"),
        ("html", "é<meta charset=utf-16>".encode(), "utf-8"),
        ("html", "<meta charset=gb2312>é镕".encode("gbk"), "gb18030"),
        ("markdown", "\ufeff# é".encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_a_document_keeps_its_encoding(format, data, encoding):
    text, found = decode(data, format)

    assert found == encoding
    assert "é" in text
    assert "\ufeff" not in text
    assert encode(text, found, format) == data


def test_what_an_encoding_lacks_is_a_reference():
    assert encode("猫é", "cp1252", "html") == b"&#29483;\xe9"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<meta charset=none-such>", "an encoding that Python knows.*none-su"),
        (b"<meta charset=base64>", "an encoding that Python knows.*base64"),
        (b"<meta charset=punycode>-aaa", "an encoding that Python knows.*puny"),
        (b"<meta charset=utf7>", "an encoding that Python knows.*utf7"),
        (b"\xff\xff", "must be in utf-8. Received: .*position 0"),
    ],
)
def test_refuses_bytes_that_it_cannot_read(data, message):
    with pytest.raises(ValueError, match=message):
        decode(data, "html")


@pytest.mark.parametrize(
    ("format", "text"), [("html", b""), ("srt", b"00:01 --> 00:02\n<i>A</i> cat")]
)
def test_refuses_a_model_that_cannot_align(
    format, text, export_dir, monkeypatch, refused
):
    monkeypatch.setattr(translate, "load", lambda options: FunctionRuntime(None))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    line = refused(translate, f"--export-dir={export_dir}", f"--format={format}")

    assert f"the format {format} needs an export with the signature align" in line


@pytest.mark.parametrize("format", ["text", "srt", "vtt"])
def test_plain_documents_need_no_alignment(format, monkeypatch, translate_file):
    runtime = FunctionRuntime(lambda lines: make_outputs([x.upper() for x in lines]))
    monkeypatch.delattr(FunctionRuntime, "knows_placeholders")
    monkeypatch.setattr(translate, "load", lambda options: runtime)
    text = b"1\n00:00:01,000 --> 00:00:02,000\nA cat.\n"

    found = translate_file(text, "--export-dir=x", f"--format={format}")

    assert found == text.replace(b"A cat.", b"A CAT.")


def test_the_caller_answers_the_requests_of_a_document():
    steps = markup_steps(
        "<p>a <b>cat</b></p><p>a</p><hr><p>a</p>", "html", split_sentences
    )

    assert next(steps) == TranslationRequest(["a cat", "a"])
    asked = steps.send([("un gato", False), ("un", True)])
    assert asked == AlignmentRequest([("a cat", "un gato")])
    with pytest.raises(StopIteration) as stopped:
        steps.send([np.eye(2)])
    assert stopped.value.value.content == (
        "<p>un <b>gato</b></p><p>un</p><hr><p>un</p>"
    )
    assert stopped.value.value.counts["truncated"] == 2


def translate_with(source, translation, weights):
    """Translates HTML of one sentence, with these weights of words."""
    steps = markup_steps(source, "html", split_sentences)
    next(steps)
    steps.send([(translation, False)])
    with pytest.raises(StopIteration) as stopped:
        steps.send([np.array(weights, float)])
    return stopped.value.value.content


def test_a_leaf_that_the_translation_moves_replaces_no_word():
    # Of "Press OK now .", the translation puts OK at its end.
    weights = [[0.6, 0.4, 0, 0]] + [[0, 0, 1, 0]] * 3
    weights += [[0, 1, 0, 0], [0, 0, 0, 1]]
    source = "<p><b>Press <code>OK</code></b> now.</p>"

    found = translate_with(source, "Drücken Sie gleich jetzt OK.", weights)

    for part in ("<code>OK</code>", "Drücken", "Sie", "gleich", "jetzt", "OK"):
        assert found.count(part) == 1


def test_a_leaf_is_written_once_where_its_word_comes_twice():
    source, weights = "<p>Run <code id=c>make</code> now</p>", np.eye(3)[[0, 1, 1, 2]]

    found = translate_with(source, "Lance make make maintenant", weights)

    assert found.count("<code id=c>make</code>") == found.count("<code") == 1
    assert found.count("make") == 2


@pytest.mark.parametrize(
    ("source", "translation", "weights", "expected"),
    [
        (
            "It costs 5 € now",
            "Custa 5 euros agora",
            [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
            "Custa 5 € agora",
        ),
        (
            "Paid £20 to 20 men",
            "Pagamos 20 libras a 20 homens",
            np.eye(5)[[0, 1, 1, 2, 3, 4]],
            "Pagamos £20 a 20 homens",
        ),
        ("Send 5 €", "Envie 15 euros", [[1, 0], [0, 1], [0, 0.4]], "Envie 5 €"),
        # The first amount attends to the second.
        (
            "Pay 5 € or 6 € now",
            "Pague 5 € 6 euros agora",
            np.eye(5)[[0, 3, 3, 3, 4]],
            "Pague 5 € 6 € agora",
        ),
    ],
)
def test_an_amount_is_written_once(source, translation, weights, expected):
    found = translate_with(f"<p>{source}</p>", translation, weights)
    assert found.startswith(f"<p>{expected}")


@pytest.mark.parametrize(
    ("part", "blank"),
    [
        ("https://a.org/?q=" + "a" * 1200, " "),
        ("<code>" + "set all of them; " * 80 + "</code>", " "),
        ("<code>" + "set all of them; " * 80 + "</code>", ""),
        ("<span translate=no>" + "kept" * 1250 + "</span>", ""),
    ],
)
def test_a_long_part_that_stays_unchanged_is_written_once(part, blank):
    source = f"<p>See{blank}{part}{blank}now, <b>please</b>.</p>"
    requested = []

    def write(text):
        requested.append(text)
        return text.upper()

    def cut(texts):
        # The service cuts sentences that are long, wherever it must.
        lengths = map(len, texts)
        return [[(i, min(i + 700, n)) for i in range(0, n, 700)] for n in lengths]

    for split in split_sentences, cut:
        found = translate_markup(source, "html", word_for_word(write, split)).content
        assert found.count(part) == 1
        assert found.replace(part, "") == (
            f"<p>SEE{blank}{blank}NOW, <b>PLEASE</b>.</p>"
        )
    assert max(map(len, requested)) < 1100
