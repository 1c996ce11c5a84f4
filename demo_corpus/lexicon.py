"""Reads `words.toml` into words and slots."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources

from demo_corpus.inflection import (
    add_english_s,
    agreeing_forms,
    english_verb,
    spanish_plural,
    spanish_verb,
)
from demo_corpus.parts_of_speech import Invariable, Noun, Phrase, Word, adjective

FILE = resources.files("demo_corpus") / "words.toml"
TABLES = tomllib.loads(FILE.read_text("utf-8"))


def split_entries(table: str, separator: str = " ") -> Iterator[tuple[str, str]]:
    """Yield the `english spanish` entries of a table, which commas separate."""
    for entry in table.split(","):
        english, spanish = entry.strip().split(separator)
        yield english.strip(), spanish.strip()


def expand_kinds(names: str) -> frozenset[str]:
    """Return the kinds of noun, with those in the groups that are named."""
    groups = TABLES["kind_groups"]
    return frozenset(
        kind for name in names.split() for kind in groups.get(name, name).split()
    )


def read_noun(english: str, spanish: str, kind: str) -> Noun:
    english, _, english_plural = english.partition("/")
    spanish, _, gender = spanish.partition(":")
    spanish, _, plural = spanish.partition("/")
    gender = gender or ("f" if re.search("(a|ión|dad)$", spanish) else "m")
    return Noun(
        english,
        english_plural or add_english_s(english),
        spanish,
        plural or spanish_plural(spanish),
        gender == "f",
        kind,
        human=kind in expand_kinds("people"),
    )


def read_adjective(english: str, spanish: str, kinds: str, traits: str) -> Word:
    english, _, comparative = english.partition("/")
    spanish, _, before = spanish.partition("<")
    forms = tuple(spanish.split("/")) if "/" in spanish else agreeing_forms(spanish)
    return adjective(
        english,
        comparative or f"more {english}",
        forms,
        kinds=expand_kinds(kinds),
        traits=frozenset(traits.split()),
        before_noun=(before, *forms[1:]) if before else (),
    )


def read_verb(
    roles: str, english: str, spanish: str, kinds: str, irregular: dict | None = None
) -> Word:
    infinitive, _, change = spanish.partition(" ")
    forms = {
        "english": english_verb(english, auxiliary="a" in roles),
        "spanish": spanish_verb(infinitive, change, irregular or {}),
    }
    base = english.split()[0].replace("_", " ")
    return Word(base, forms, expand_kinds(kinds), frozenset(roles))


UNCOUNTABLE_KINDS = TABLES["uncountable_kinds"].split()
FAMILY_KINDS = expand_kinds("family")
NAMES = [
    Phrase(name, name, feminine=key == "women")
    for key in ("women", "men")
    for name in TABLES[key].split()
]
NOUNS = [
    read_noun(*pair, kind)
    for kind, table in TABLES["nouns"].items()
    for pair in split_entries(table)
]
ADJECTIVES = [
    read_adjective(*pair, kinds, traits)
    for kinds, traits, table in TABLES["adjectives"]
    for pair in split_entries(table)
]
ORDINALS = [word for word in ADJECTIVES if "ordinal" in word.traits]
OWNERS = [
    adjective(english, "", agreeing_forms(spanish))
    for english, spanish in split_entries(TABLES["possessive_pronouns"])
]
ADJECTIVE_SLOTS = TABLES["adjective_slots"]
VERBS = [read_verb(*row) for row in TABLES["verbs"]]
VERB_SLOTS = {
    slot: [verb for verb in VERBS if verb.traits & set(roles)]
    for slot, roles in TABLES["verb_slots"].items()
}
# The first verb of each Spanish infinitive.
NAMED_VERBS = {verb.forms["spanish"]["base"][0]: verb for verb in reversed(VERBS)}
PHRASES = {
    slot: [Invariable(*pair) for pair in split_entries(table, "=")]
    for slot, table in TABLES["phrases"].items()
}
NOUN_SLOTS = {
    slot: (expand_kinds(kinds), singular.split(), plural.split(), chance)
    for slot, (kinds, singular, plural, chance) in TABLES["noun_slots"].items()
}
# In the singular and in the plural.
DETERMINERS = tuple(TABLES["determiners"].values())


@cache
def nouns_of_kinds(kinds: frozenset[str]) -> list[Noun]:
    """Return the nouns of any of some kinds."""
    return [noun for noun in NOUNS if noun.kind in kinds]


@cache
def adjectives_for(kind: str, trait: str | None) -> list[Word]:
    """Return the adjectives that suit a kind of noun and have a trait.

    Without a trait, those that may stand next to the noun.
    """
    return [
        word
        for word in ADJECTIVES
        if kind in word.kinds
        and (trait in word.traits if trait else "predicate" not in word.traits)
    ]
