"""Tests of `translate.runtime.runtime` with signatures that are functions."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from command_line.errors import UserError
from documents.glossary import Glossary
from documents.markup.word_alignment import find_words
from export.model.document_translation import translate_in_case
from tests.helpers.fake_models import FunctionRuntime, make_outputs


@pytest.mark.parametrize(
    ("was_cut", "expected"),
    [([False, True, False], ["a", "c"]), ([True, True, False], ["a", "b", "c"])],
)
def test_alternatives_are_as_complete_as_the_best(was_cut, expected):
    outputs = {
        "translation": np.array([[b"a", b"b", b"c", b"d"]], object),
        "valid": np.array([[True, True, True, False]]),
        "truncated": np.array([[*was_cut, False]]),
    }

    runtime = FunctionRuntime(lambda texts: outputs)

    assert runtime.find_alternatives(["x"], 4) == [expected]


def test_a_signature_that_is_missing_is_named():
    with pytest.raises(UserError, match="signature align; .*serving_default$"):
        FunctionRuntime(None).require("serving_default", "align")


@pytest.mark.parametrize(
    "change",
    [
        {"translation": np.zeros(2, np.float32)},
        {"translation": np.array([b"A"], object)},
        {"truncated": np.zeros([2, 1], bool)},
    ],
)
def test_another_model_than_one_of_translation_is_refused(change):
    runtime = FunctionRuntime(lambda lines: {**make_outputs(lines), **change})

    (name,) = change
    with pytest.raises(UserError, match=f"answer without `{name}` for each text"):
        runtime.translate_batch(["a", "b"])


def test_a_model_that_cannot_align_is_refused():
    runtime = FunctionRuntime(lambda texts: {"attention": np.zeros([1, 1, 1])})
    runtime.ask = lambda name, inputs: {"attention": np.zeros([1, 1, 1])}

    with pytest.raises(ValueError, match="Received: no source_tokens, target_tokens"):
        runtime.align([("a", "b")])


@settings(deadline=None)
@given(
    st.lists(
        st.text("aB Éß1.,-日Σ") | st.sampled_from(["STOP NOW", "DON'T GO", "NATO A"])
    )
)
def test_capitals_are_translated_as_in_the_graph(texts):
    def marked(lines):
        return make_outputs([b"<" + line + b">" for line in lines])

    def translate(lines):
        return {
            "translation": tf.constant(marked(lines.numpy().tolist())["translation"])
        }

    found = FunctionRuntime(marked).translate(texts)

    if texts:
        expected = translate_in_case(tf.constant(texts), translate)["translation"]
        expected = [text.decode() for text in expected.numpy()]
        # Python also maps letters whose capitals are several.
        assert [each.text.replace("SS", "ß") for each in found] == [
            text.replace("SS", "ß") for text in expected
        ]


def test_symbols_that_a_model_loses_are_put_back():
    def reverse(lines):
        words = [line.decode().replace("😆", "").split() for line in lines]
        return make_outputs([" ".join(reversed(each)) for each in words])

    runtime = FunctionRuntime(reverse, ["serving_default", "align"])
    runtime.align = lambda pairs: [np.eye(3)[[2, 0]] for _ in pairs]

    found = runtime.translate(["We → go", "😆", "cats 😆 go"])

    assert [each.text for each in found] == ["go → We", "😆", "go cats 😆"]
    assert runtime.ask("serving_default", {"text": np.array([b"a \xf0\x9f\x98\x86"])})[
        "translation"
    ].tolist() == [b"a"]


def test_what_the_model_cuts_is_split_until_it_fits():
    runtime = FunctionRuntime(
        lambda lines: make_outputs([line.upper() for line in lines], limit=110)
    )
    clauses = ", ".join("abcdef " * n + "g" for n in (9, 14, 20, 12))

    long, unbroken, short = runtime.translate_any_length(
        [clauses, "x" * 9999, "a" * 99]
    )

    assert long == (clauses.upper(), False)
    assert unbroken == ("X" * 9999, False)
    assert short == ("A" * 99, False)


def test_what_never_ends_is_reported():
    runtime = FunctionRuntime(
        lambda lines: {**make_outputs(lines), "truncated": np.ones(len(lines), bool)}
    )

    (found,) = runtime.translate_any_length(["again " * 100])

    assert found.truncated


def test_a_failing_alignment_does_not_fail_the_translation():
    class Broken(FunctionRuntime):
        def align(self, pairs):
            raise OSError("the server is down")

    model = Broken(lambda texts: make_outputs([b"gato"]), ("serving_default", "align"))

    found = model.translate_batch(["cat \U0001f606"])["translation"]

    assert found.tolist() == ["gato \U0001f606".encode()]


class Aligning(FunctionRuntime):
    """Answers by a function of bytes, in the order of the words."""

    def __init__(self, write):
        super().__init__(
            lambda lines: make_outputs(list(map(write, lines))),
            ("serving_default", "align", "translate_nbest"),
        )

    def align(self, pairs):
        return [np.eye(len(find_words(t)), len(find_words(s))) for s, t in pairs]


GLOSSARY = Glossary([("hard disk", "disco rígido"), ("cat", "felino")])


def test_a_glossary_changes_the_lines_that_have_its_terms():
    plain = Aligning(bytes.upper)
    lines = [b"a hard disk", b"a \xff dog", "a ☺ cat".encode(), b"no felino"]

    model = plain.with_glossary(GLOSSARY)
    found = model.translate_batch(lines)["translation"].tolist()

    expected = ["A disco rígido".encode(), b"A \xff DOG", "A ☺ felino".encode()]
    assert found == [*expected, b"NO FELINO"]
    assert model.original is plain
    assert model.with_glossary(Glossary()).original is plain
    assert plain.translate_batch(lines)["translation"][0] == b"A HARD DISK"


def test_a_sentence_in_capitals_has_its_terms_in_capitals():
    model = Aligning(bytes.lower).with_glossary(GLOSSARY)

    assert model.translate(["A HARD DISK"])[0].text == "A DISCO RÍGIDO"


def test_alternatives_have_the_terms():
    model = Aligning(bytes.upper).with_glossary(GLOSSARY)
    model.ask = lambda *_: {
        "translation": np.array([[b"um gato", b"felino um"]], object),
        "valid": np.array([[True, True]]),
        "truncated": np.array([[False, False]]),
    }

    assert model.find_alternatives(["a cat"], 2) == [["um felino", "felino um"]]


def test_a_glossary_needs_alignments():
    with pytest.raises(UserError, match="must have the signature align"):
        FunctionRuntime(make_outputs).with_glossary(GLOSSARY)
