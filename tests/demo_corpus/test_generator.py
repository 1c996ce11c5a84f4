import hashlib
import json
import re
from functools import cache

import pytest

from demo_corpus import lexicon
from demo_corpus.generator import demo_corpus, held_out_combinations

DETERMINERS = ("the", "a", "an", "my", "your", "his", "her", "our", "their")
DETERMINERS += ("this", "that", "these", "those", "two", "three", "many")
corpus = cache(demo_corpus)


def tokens(text):
    return re.findall(r"\w+|[^\w\s]", text)


def forms(word):
    """All English forms of a noun, an adjective or a verb of the lexicon."""
    found = {word}
    for noun in lexicon.NOUNS:
        if noun.english == word:
            found.add(noun.english_plural)
    for other in lexicon.ADJECTIVES + lexicon.VERBS:
        if word == other.forms["english"].get("base", [other.english])[0]:
            for name, of_form in other.forms["english"].items():
                found |= set(of_form) if name not in ("do", "article") else set()
    return found


def test_every_unseen_sentence_has_a_held_out_combination():
    pairs = [
        (forms(word), forms(noun)) for word, noun in sorted(held_out_combinations())
    ]
    for english, _ in corpus()["unseen"]:
        text = f" {' '.join(tokens(english.lower()))} "
        assert any(
            any(f" {form} " in text for form in noun_forms)
            and any(f" {form.lower()} " in text for form in word_forms)
            for word_forms, noun_forms in pairs
        ), english


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_no_other_sentence_has_a_held_out_combination(split):
    windows = set()
    for english, _ in corpus()[split]:
        words = tokens(english.lower())
        for size in (2, 3, 4):
            for start in range(len(words) - size + 1):
                windows.add(tuple(words[start : start + size]))
    adjectives = {adjective.english for adjective in lexicon.ADJECTIVES}
    verbs = {verb.english for verb in lexicon.VERBS}

    for word, noun in held_out_combinations():
        for noun_form in forms(noun):
            if word in adjectives:
                assert (word.lower(), noun_form) not in windows
                assert ("the", noun_form, "is", word.lower()) not in windows
            if word in verbs:
                for form in forms(word):
                    for determiner in DETERMINERS:
                        found = (*form.split(), determiner, noun_form)
                        assert found not in windows


def test_says_the_same_as_ever():
    """Numbers of the demo are compared with those of other versions.

    Commit c2d0cad has tests of this text: its spelling, its words and its articles.
    """
    found = corpus()
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()

    assert digest.startswith("153d682967cdc45ffa2f5b59e8b73d65")
