import random

import numpy as np
import pytest
import tensorflow as tf

from export.model import document_translation
from export.model.document_translation import translate_documents
from export.model.sentence_splitting import find_unknown_symbols
from keras_transformer.special_ids import UNKNOWN_ID
from tests.helpers.signature_requests import ask

SENTENCES = [
    "I have two black cats.",
    "The nurse, Dr. Cole, has cows!",
    "Is it 3.5 km to St. Ives?",
    "“Go!” she said.",
    "Übung macht den Meister…",
]
IN_LOWER_CASE = [sentence.lower() for sentence in SENTENCES[:-1]]
WITHOUT_STOP = ["no capital, no stop", "a title"]
ALONE = [*SENTENCES, *WITHOUT_STOP]
# Text at the ends of lines, between lines, and between sentences.
MARKS = ["", "- ", "  * ", "12. ", "> > ", "# ", "    ", "\u3000", "| "]
ENDS = ["", "  ", " |", "\t42\t"]
LINES = ["\n", "\n\n", "\r\n", "\n---\n \n", "\n```\nx = 1. Y\n\n```\n"]
BLANKS = [" ", "  ", "\u00a0"]


# A vocabulary that knows the arrow.
SYMBOLS = find_unknown_symbols(
    lambda texts: [[4, 1] if text == "→" else [UNKNOWN_ID, 1] for text in texts]
)


def write(seed, translate=str, sentences=SENTENCES):
    """Returns a text by its author, each sentence translated or not."""
    chance = random.Random(seed)
    text = ""
    for _ in range(chance.randrange(6)):
        text += chance.choice(MARKS)
        more = chance.randrange(3)
        for _ in range(more):
            text += translate(chance.choice(sentences)) + chance.choice(BLANKS)
        # A sentence without a stop begins only at the line's start.
        others = [] if more else WITHOUT_STOP
        text += translate(chance.choice([*sentences, *others]))
        text += chance.choice(ENDS) + chance.choice(LINES)
    return text


def in_brackets(sentences):
    """Translates sentences so that it shows where they begin and end."""
    return {
        "translation": "<" + sentences + ">",
        "score": tf.cast(tf.strings.length(sentences), tf.float32),
        "truncated": tf.strings.length(sentences) > 99,
    }


def translate(texts, translate=in_brackets, limit=99):
    outputs = translate_documents(
        tf.constant(texts, tf.string),
        "en",
        SYMBOLS,
        limit,
        lambda sentences: tf.strings.length(sentences) > limit,
        lambda sentences, _: translate(sentences),
    )
    return {name: tensor.numpy() for name, tensor in outputs.items()}


@pytest.fixture(scope="module")
def answers(servable):
    texts = ask([text.encode() for text in ALONE])
    found = servable.predict("serving_default", texts)["translation"]
    return dict(zip(ALONE, (text.decode() for text in found), strict=True))


@pytest.mark.parametrize("sentences", [SENTENCES, IN_LOWER_CASE])
def test_a_text_is_its_sentences_and_what_stood_between(sentences):
    texts = [write(seed, str, sentences) for seed in range(10_000)]

    found = translate(texts)

    expected = [write(seed, "<{}>".format, sentences) for seed in range(10_000)]
    assert [text.decode() for text in found["translation"]] == expected
    assert not found["truncated"].any()


def test_the_signature_translates_each_sentence_alone(servable, answers):
    texts = [write(seed).encode() for seed in range(60)]

    found = servable.predict("translate_document", ask(texts))

    for seed, text in enumerate(found["translation"]):
        assert text.decode() == write(seed, answers.get)


def test_score_and_cut_are_of_the_sentences():
    found = translate(["Five. Seven, x.", "", "--", "A" + "b" * 199], limit=300)

    np.testing.assert_allclose(found["score"], [(5 + 9) / 2, 0, 0, 200])
    assert found["truncated"].tolist() == [False, False, False, True]
    assert translate([])["translation"].shape == (0,)


def test_sentences_that_are_too_long_are_split():
    text = "one two three, " * 20

    found = translate([text], limit=40)

    pieces = "<one two three, one two three,>"
    assert found["translation"][0].decode().startswith(pieces)
    assert not found["truncated"][0]
    plain = found["translation"][0].decode().replace("<", "").replace(">", "")
    assert plain == text


def test_capitals_are_translated_as_other_letters_are():
    seen = []

    def remember(sentences):
        seen.extend(sentences.numpy().tolist())
        return in_brackets(sentences + "ß é")

    found = translate(["“TWO CATS” SLEEP.\nNATO.\nTWO Cats.\nÀ LA UNE"], remember)

    assert found["translation"][0].decode() == (
        "<“TWO CATS” SLEEP.SS É>\n<NATO.ß é>\n<TWO Cats.ß é>\n<À LA UNESS É>"
    )
    assert {text.decode() for text in seen} == {
        "“Two cats” sleep.",
        "NATO.",
        "TWO Cats.",
        "À la une",
    }


def test_a_line_end_of_the_model_is_a_blank():
    found = translate(["One.\nTwo."], lambda s: in_brackets(s + "\n\u2028"))

    assert found["translation"][0].decode() == "<One.  >\n<Two.  >"


def test_what_is_beyond_the_limit_is_cut_and_said(monkeypatch):
    monkeypatch.setattr(document_translation, "MAX_DOCUMENT", 12)

    found = translate(["One.\nTwo. Three. Four.", "One.\nTwo."])

    assert found["translation"][0].decode() == "<One.>\n<Two.> <Th>"
    assert found["translation"][1].decode() == "<One.>\n<Two.>"
    assert found["truncated"].tolist() == [True, False]


def test_few_sentences_are_translated_at_a_time(monkeypatch):
    monkeypatch.setattr(document_translation, "SENTENCES_PER_BATCH", 4)
    sizes = []

    def count(sentences):
        sizes.append(len(sentences))
        return in_brackets(sentences)

    translate(["One. " * 7 + "Two? " * 3 + "X" * 90], count)

    assert sizes == [2, 4, 4, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I love it! 😆", "<I love it!> 😆"),
        ("I love 😆 cats ❤\ufe0f.", "<I love> 😆 <cats> ❤\ufe0f."),
        ("♪ La la ♪\n", "♪ <La la> ♪\n"),
        ("A 👨\u200d👩\u200d👧👍🏽 b", "<A> 👨\u200d👩\u200d👧👍🏽 <b>"),
        ("1\ufe0f\u20e3 One 🇧🇷", "1\ufe0f\u20e3 <One> 🇧🇷"),
        # It knows the arrow; № is spelled in letters.
        ("A → b № 5", "<A → b № 5>"),
    ],
)
def test_symbols_that_the_vocabulary_lacks_stay(text, expected):
    (found,) = translate([text])["translation"]

    assert found.decode() == expected
