"""Tests of `documents.glossary` and `documents.translation_repair`."""

import argparse
import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from command_line.errors import UserError
from documents.glossary import Glossary, parse_glossary_option, read_glossary
from documents.markup.translate_markup import translate_markup
from documents.markup.word_alignment import find_words
from documents.translation_repair import place_terms
from tests.helpers.known_alignment_translators import word_for_word

# Words of a text; only those in Latin letters need a blank between them.
LATIN = ["ab", "Ab", "a", "é", "e\u0301", "12"]
TOKENS = st.sampled_from([*LATIN, "東", "京", "ン", "-", "'", ".", ","])


def write(tokens, blanks):
    """Returns the text of words, and where each begins and ends."""
    text, spans = "", []
    pairs = zip(["", *tokens], tokens, blanks, strict=False)
    for before, token, blank in pairs:
        if blank or (before in LATIN and token in LATIN):
            text += " "
        spans.append((len(text), len(text) + len(token)))
        text += token
    return text, spans


def fold(tokens):
    return tuple(token.lower().replace("e\u0301", "é") for token in tokens)


@st.composite
def written_tokens(draw, size):
    tokens = draw(st.lists(TOKENS, min_size=1, max_size=size))
    blanks = draw(st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens)))
    return tokens, *write(tokens, blanks)


@given(written_tokens(12), st.lists(written_tokens(3), max_size=6))
def test_terms_are_those_that_every_pair_of_word_ends_gives(text, terms):
    tokens, text, spans = text
    known = {fold(term): written for term, written, _ in terms}
    glossary = Glossary([(written, written) for written in known.values()])

    expected, taken = [], set()
    for size, first in itertools.product(range(len(tokens), 0, -1), range(len(tokens))):
        words, places = fold(tokens[first : first + size]), range(first, first + size)
        if words in known and places.stop <= len(tokens) and taken.isdisjoint(places):
            taken.update(places)
            start, end = spans[first][0], spans[places[-1]][1]
            expected.append((start, end, " ".join(known[words].split())))

    assert glossary.find(text) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("A hard disk, a hard stone", {"hard": "1", "hard disk": "2"}, ["2", "1"]),
        ("x y z w", {"x y": "1", "y z w": "2"}, ["2"]),
        ("diskette disks disk's", {"disk": "1"}, ["1"]),
        ("HARD\u00a0 Disk", {"hard disk": "1"}, ["1"]),
        ("東京都の京都", {"東京": "1", "京都": "2", "東京都": "3"}, ["3", "2"]),
        ("ハードディスクです", {"ハードディスク": "1"}, ["1"]),
        ("l’ordinateur", {"ordinateur": "1"}, ["1"]),
        ("www.a.org/disk {disk} ⦅0⦆ disk", {"disk": "1", "0": "2"}, ["1"]),
        ("5 kg 5", {"5 kg": "1", "5": "2"}, ["1", "2"]),
    ],
)
def test_which_terms_are_found(text, terms, expected):
    assert [found.target for found in Glossary(terms.items()).find(text)] == expected


def test_case_matters_if_asked():
    glossary = Glossary([("US", "EUA"), ("us", "nós")], match_case=True)

    assert [found.target for found in glossary.find("us US Us")] == ["nós", "EUA"]


@pytest.mark.parametrize(
    ("text", "translation", "terms", "expected"),
    [
        (
            *("The hard disk is full.", "O disco duro está cheio."),
            *({"hard disk": "disco rígido"}, "O disco rígido está cheio."),
        ),
        ("disk and disk", "disco e disco", {"disk": "drive"}, "drive e drive"),
        ("disk and disk", "disco e drive", {"disk": "drive"}, "drive e drive"),
        ("Disks fail.", "Discos falham.", {"disks": "drives"}, "Drives falham."),
        ("Phones fail.", "Fones falham.", {"phones": "iPhones"}, "iPhones falham."),
        ("Come now please.", "Vem já favor.", {"please": ""}, "Vem já."),
        ("Please come now.", "Favor vem já.", {"please": ""}, "vem já."),
        ("A fast disk", "Um disco", {"fast disk": "<b>&"}, "Um <b>&"),
        ("A disk fails", "", {"disk": "drive"}, "drive"),
        ("my disk", "私円", {"disk": "ディスク"}, "私ディスク"),
        ("cat dog", "猫犬", {"cat": "gato", "dog": "cão"}, "gato cão"),
        ("disk a hard disk", "d um d", {"disk": "x", "hard disk": "x y"}, "x um x y"),
    ],
)
def test_target_terms_replace_what_is_aligned(text, translation, terms, expected):
    assert place_terms(Glossary(terms.items()), text, translation, None) == expected


def test_target_terms_go_where_the_weights_say():
    glossary = Glossary([("disk", "drive")])
    weights = np.eye(3)[::-1]

    assert place_terms(glossary, "disk a b", "x y z", weights) == "x y drive"
    assert place_terms(glossary, "a disk b", "x y", np.eye(3)[[0, 2]]) == "x drive y"


def test_a_target_term_stays_at_the_term_that_it_translates():
    glossary = Glossary([("disk", "disco"), ("record", "gravação")])
    weights = np.eye(3)[::-1]

    found = place_terms(glossary, "disk or record", "disco ou disco", weights)

    assert found == "gravação ou disco"


def test_a_term_without_words_is_placed_without_an_alignment():
    glossary = Glossary([("★", "star")])

    assert "star" in place_terms(glossary, "★", "foo bar", None).split()


SOURCES, TARGETS = ["a", "b", "a b", "c", "b c"], ["x", "y", "x y", "东", "东x", "z-y"]
SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", ".", "d-a"]), max_size=8)
TRANSLATIONS = st.lists(
    st.sampled_from(["k", "L", "m-n", "x", "y", "东", ",", "z-y"]), max_size=8
)
GLOSSARIES = st.dictionaries(
    st.sampled_from(SOURCES), st.sampled_from(TARGETS), max_size=5
)


@st.composite
def aligned_pairs(draw):
    text, translation = (" ".join(draw(each)) for each in (SENTENCES, TRANSLATIONS))
    shape = len(find_words(translation)), len(find_words(text))
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    weights = random.dirichlet([0.1] * max(1, shape[1]), shape[0])
    return text, translation, weights[:, : shape[1]]


@given(aligned_pairs(), GLOSSARIES)
def test_each_target_term_is_there_and_the_rest_is_the_translation(pair, terms):
    text, translation, weights = pair
    glossary = Glossary(terms.items())
    wanted, present = glossary.count(text, translation)

    found = place_terms(glossary, text, translation, weights)

    targets = [match.target for match in glossary.find(text)]
    for target in targets:  # Blanks do not count.
        written, wanted_here = ("".join(x.split()) for x in (found.casefold(), target))
        assert written.count(wanted_here) >= targets.count(target)
    assert glossary.lacks(text, translation) == (present < wanted)
    if present == wanted:
        assert found == translation
    assert "  " not in found
    words = iter(translation.split())
    others = {part for target in targets for part in target.split()}
    rest = [word for word in found.split() if word.casefold() not in others]
    if "东" not in "".join(targets):  # Nothing parts it from a word beside it.
        assert all(word in words for word in rest)


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("<p>A <b>hard</b> disk</p>", "<p>UM <b>R</b> C&amp;A</p>"),
        ("<p>A <b>hard disk</b></p>", "<p>UM <b>R C</b>&amp;A</p>"),
    ],
)
def test_a_term_across_a_tag_is_escaped_in_html(tagged, expected):
    glossary = Glossary([("hard disk", "R C&A")])

    def translate(text):
        return place_terms(glossary, text, "UM DISCO DURO", None)

    assert (
        translate_markup(tagged, "html", word_for_word(translate)).content == expected
    )


@pytest.fixture
def read(tmp_path):
    def read(text, pair=""):
        (tmp_path / "terms").write_text(text, "utf-8")
        return read_glossary(parse_glossary_option(f"{pair}{tmp_path / 'terms'}"))

    return read


def test_a_file_has_terms_comments_and_pairs_of_codes(read):
    lines = "# A comment\n\nhard disk\tdisco rígido\nus\tnós\ten:pt\nus\twir\ten:de\n"

    glossary = read(lines, "en:pt=")

    targets = [match.target for match in glossary.find("us, a hard disk")]
    assert targets == ["nós", "disco rígido"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("disk", "must be a term, a tab and its target term"),
        ("a\tb\tc\td", "must be a term, a tab and its target term"),
        (" \tb", "a term may not be empty"),
        ("Cat\tb", "Received: Cat as a and as b"),
        ("a\t{b}", "may not have a variable. Received: {b}"),
        ("a\tb\ten:pt", "is for en:pt: write --glossary with the pair"),
    ],
)
def test_a_wrong_line_is_named(read, line, message):
    with pytest.raises(UserError, match="terms, line 3: ") as refused:
        read(f"# a\ncat\ta\n{line}\n")

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["# a\n", "\n", "a\tb\ten:pt-BR\n"])
def test_a_file_without_terms_is_refused(read, text):
    with pytest.raises(UserError, match="must have a term for en:pt. Received: none"):
        read(text, "en:pt=")
    with pytest.raises(argparse.ArgumentTypeError, match="must be a file"):
        parse_glossary_option("en:pt=")


def test_other_terms_replace_those_of_a_glossary():
    first = Glossary([("cat", "gato"), ("dog", "cão")])

    found = first.overridden_by([("Cat", "felino")])

    assert [match.target for match in found.find("cat dog")] == ["felino", "cão"]
    assert found
    assert first.overridden_by([])
    assert not Glossary().overridden_by([])
    assert first.find("cat")[0].target == "gato"
