import random

import hypothesis
import pytest
import tensorflow as tf
from hypothesis import strategies

from export.model.sentence_splitting import split_long, split_text


def split(text, language="en"):
    """Returns the parts of a text, and those that are sentences."""
    parts, is_sentence = split_text(tf.constant([text]), language)
    parts = [part.decode() for part in parts[0].numpy()]
    sentences = is_sentence[0].numpy()
    return parts, [p for p, s in zip(parts, sentences, strict=True) if s]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Dr. Smith left at 3.55 p.m.", "He said “Go!”", "Then? no."]),
        ("en", ["J. K. Rowling met the U.S. Senate.", "So did I.", "He left…"]),
        ("en", ["See No. 5 and pp. 7 of it.", "(Was it Art. 5?)", "¡Sí!"]),
        ("en", ["He said no.", "It ended.[3]", "“Why?”", "10 came... or 9."]),
        ("de", ["„Geh!“", "»Ja.«", "Gut."]),
        ("en", ["J.-P. Sartre (A. Camus too) ate.", "I left."]),
        ("de", ["Am 3. Mai kam Dr. Alt z.B. nach Bonn.", "Er blieb bzw. Sie."]),
        ("fr", ["M. Dupont est ici.", "« Où ? »", "À Paris."]),
        ("", ["Он пришёл.", "Она ушла!", "12 лет."]),
        ("xx", ["Dr.", "Smith left."]),  # Without a language's abbreviations.
        ("hi", ["वह आया।", "वह गई।"]),
        ("", ["See https://a.org/b.c?d=E.", "Ask a@b.org."]),
        ("en", ["Yahoo! is max. five km, e.g. 3.5 km, away.", "What?! no."]),
        ("en", ["i am here.", "where is the station?", "my father is a doctor."]),
        ("en", ["dr. cole met j. k. rowling, i.e. me.", "what?!", "no!", "yes."]),
        ("en", ["“go!” she said.", "(it is 3.5 km.)", "“ok.”", "no... or yes."]),
        ("en", ["node.js is at example.com.", "see no. 5 at 5 p.m. today."]),
        ("de", ["er kam am 3. mai z.b. nach bonn.", "sie blieb."]),
        ("", ["он пришёл.", "она ушла!", "«где?»"]),
        ("", ["ის მოვიდა.", "სად არის?", "აქ."]),  # Georgian.
    ],
)
def test_sentences_end_where_a_reader_ends_them(language, sentences):
    text = " ".join(sentences)

    assert split(text, language)[1] == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("one. two\nThree. four", ["one. two", "Three. four"]),
        ("- one. two\n1. Three", ["one. two", "Three"]),
        ("max. five! (And more.)", ["max. five!", "(And more.)"]),
        ("“One. two”", ["“One. two”"]),
        ("x\n```\nA. b\n```\none. two", ["x", "one.", "two"]),
    ],
)
def test_one_sentence_with_a_capital_shows_that_all_have_one(text, sentences):
    assert split(text)[1] == sentences


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    sentences=strategies.lists(
        strategies.sampled_from(
            [
                "I have two black cats.",
                "The nurse, Dr. Cole, has cows!",
                "Is it 3.5 km to St. Ives?",
                "“Go!” she said.",
                "(He came at 5 p.m. with J. K. Rowling.)",
            ]
        ),
        min_size=1,
    )
)
def test_sentences_in_lower_case_are_split_as_others(sentences):
    text = " ".join(sentences)

    assert split(text)[1] == sentences
    assert split(text.lower())[1] == [sentence.lower() for sentence in sentences]


@pytest.mark.parametrize(
    "sentences",
    [
        ["今日は。", "「はい。」と彼は言った！", "本当？", "はい。"],
        ["他走了。", "你呢？", "我在这里！"],
    ],
)
def test_wide_stops_need_no_blank(sentences):
    assert split("".join(sentences), "ja")[1] == sentences
    assert split("\u3000".join(sentences), "ja")[1] == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One\ntwo\r\n\r\n three\u2028four", ["One", "two", "three", "four"]),
        ("- One.\n  * two\n10) three\n(a) four", ["One.", "two", "three", "four"]),
        ("# Head\n> > quoted\n— Dicho.", ["Head", "quoted", "Dicho."]),
        ("| a cell | b |\n|---|:-:|\n| 1 | c |", ["a cell", "b", "c"]),
        ("a\tb c\t\td\n", ["a", "b c", "d"]),
        ("---\n* * *\n12.5 %\n2024-01-01\n🙂 !", []),
        ("Do:\n```py\nx = 1. Foo\n\n~~\n```  \nThen.", ["Do:", "Then."]),
        ("~~~\nopen. To the end", []),
        ("https://a.org\na@b.de, www.c.fr", []),
        ("  one  \n", ["one"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_what_is_no_sentence_stands_between(text, sentences):
    parts, found = split(text)

    assert found == sentences
    assert "".join(parts) == text


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    texts=strategies.lists(
        strategies.lists(
            strategies.one_of(
                strategies.sampled_from(
                    [". ", "! ", "\n", "```\n", "- ", "1. ", "| ", "\t", "Dr."]
                ),
                strategies.characters(codec="utf-8"),
                strategies.sampled_from("aB。「」 .?"),
            )
        ).map("".join),
        max_size=4,
    )
)
def test_parts_are_the_text(texts):
    parts, is_sentence = split_text(tf.constant(texts, tf.string), "en")
    alone = [split_text(tf.constant([text]), "en") for text in texts]

    blanks = str.maketrans(dict.fromkeys("\x00\x1d\x1e", " "))
    joined = [b"".join(row.numpy()).decode() for row in parts]
    assert joined == [text.translate(blanks) for text in texts]
    for row, (part, sentence) in enumerate(alone):
        assert part[0].numpy().tolist() == parts[row].numpy().tolist()
        assert sentence[0].numpy().tolist() == is_sentence[row].numpy().tolist()


def test_broken_text_is_a_sentence_still():
    parts, is_sentence = split_text(tf.constant([b"a \xff b. \xc3"]))

    assert b"".join(parts[0].numpy()).decode() == "a \ufffd b. \ufffd"
    assert is_sentence[0].numpy().any()


def split_at(text, limit, size=len):
    """Returns the sentences of one too long for a limit of tokens."""

    def is_too_long(texts):
        long = [size(text.decode()) > limit for text in texts.numpy()]
        return tf.constant(long, tf.bool)

    parts, is_sentence = split_long(
        *split_text(tf.constant([text])), limit, is_too_long
    )
    assert b"".join(parts[0].numpy()).decode() == text
    return [
        part.decode()
        for part, sentence in zip(parts[0].numpy(), is_sentence[0].numpy(), strict=True)
        if sentence
    ]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one two", ["one two"]),
        ("one, two; tri, four", ["one, two;", "tri, four"]),
        ("aaaaa, bb cc dddd", ["aaaaa,", "bb cc dddd"]),
        ("one two three", ["one two", "three"]),
        ("onetwothreefour", ["onetwothre", "efour"]),
        ("あいうえおか、きくけ", ["あいうえおか、きくけ"]),
    ],
)
def test_what_is_too_long_is_split_at_the_best_place(text, pieces):
    assert split_at(text, 10) == pieces


def test_characters_may_be_several_tokens():
    pieces = split_at("ab cd " * 9, 32, lambda text: 4 * len(text))

    assert all(len(piece) <= 8 for piece in pieces)
    assert "".join(pieces).replace(" ", "") == "abcd" * 9


def test_some_of_a_batch_are_split():
    random.seed(1)
    texts = ["x " * random.randrange(1, 40) for _ in range(9)]
    parts, is_sentence = split_text(tf.constant(texts))

    parts, is_sentence = split_long(
        parts, is_sentence, 16, lambda text: tf.strings.length(text) > 16
    )

    for text, row, flags in zip(texts, parts, is_sentence, strict=True):
        assert b"".join(row.numpy()).decode() == text
        assert tf.reduce_max(tf.strings.length(row[flags])) <= 16
