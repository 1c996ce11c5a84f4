"""Parses the tables of `demo_corpus.word_tables` into words and slots."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from demo_corpus import word_tables
from demo_corpus.inflection import (
    Pair,
    add_english_s,
    agreeing_forms,
    english_verb,
    spanish_plural,
    spanish_verb,
)
from demo_corpus.parts_of_speech import Adjective, Invariable, Noun, Phrase, Verb

# Slots of verbs, by the letter of their role.
VERB_SLOT_ROLES = {
    "doing": "d",
    "deed": "dw",
    "event": "dew",
    "verb": "dsw",
    "contact": "h",
    "gift": "g",
    "act": "i",
    "leisure": "l",
    "routine": "r",
}
VERB_SLOT_PATTERN = re.compile(r"\{(verb|deed|doing|event|gift|beber)\b")
# Slots of adjectives, by the trait that they must have.
ADJECTIVE_SLOTS = {
    "trait": "ser",
    "grade": "more",
    "mood": "estar",
    "condition": "estar",
    "trouble": "trouble",
}
# Verbs that animals can be the subject of.
ANIMAL_VERBS = ("sleep", "run", "walk", "rest")


@dataclass(frozen=True)
class NounSlot:
    """The nouns that a slot admits; see `word_tables.NOUN_SLOTS`."""

    kinds: frozenset[str]
    singular: tuple[str, ...]
    plural: tuple[str, ...]
    adjective_chance: float


class Lexicon:
    """The tables of `demo_corpus.word_tables` as words."""

    def __init__(self):
        self.nouns = tuple(_read_nouns())
        self.adjectives = tuple(_read_adjectives(word_tables.ADJECTIVES))
        self.verbs, self.named_verbs = _read_verbs(word_tables.VERBS)
        self.ordinals = [a for a in self.adjectives if "ordinal" in a.traits]
        self.verbs_by_role = {
            slot: [verb for verb in self.verbs if set(verb.roles) & set(roles)]
            for slot, roles in VERB_SLOT_ROLES.items()
        }
        self.verbs_by_role["roam"] = [
            verb for verb in self.verbs if verb.english in ANIMAL_VERBS
        ]
        self.names = [
            Phrase(name, name, feminine=feminine)
            for names, feminine in ((word_tables.WOMEN, True), (word_tables.MEN, False))
            for name in names.split()
        ]
        self.phrases = {
            slot: [Invariable(*pair) for pair in _pairs(table, "=")]
            for slot, table in word_tables.PHRASES.items()
        }
        self.noun_slots = dict(_read_noun_slots())
        self.determiners = (
            _read_determiners(word_tables.SINGULAR),
            _read_determiners(word_tables.PLURAL),
        )
        self.owners = [
            Adjective(english, "", agreeing_forms(spanish))
            for english, spanish in _pairs(word_tables.POSSESSIVE_PRONOUNS)
        ]

    @cache  # noqa: B019, as there is one lexicon, `lexicon()`
    def nouns_of_kinds(self, kinds: frozenset[str]) -> list[Noun]:
        """The nouns of any of some kinds."""
        return [noun for noun in self.nouns if noun.kind in kinds]

    @cache  # noqa: B019
    def adjectives_for(self, kind: str, trait: str) -> list[Adjective]:
        """The adjectives that suit a kind of noun and have a trait."""
        return [
            adjective
            for adjective in self.adjectives
            if kind in adjective.kinds and trait in adjective.traits
        ]


@cache
def lexicon() -> Lexicon:
    """Read the tables, once."""
    return Lexicon()


def _pairs(table: str, separator: str = " ") -> Iterator[Pair]:
    """The `english spanish` entries of a table, which commas separate."""
    for entry in table.split(","):
        english, spanish = entry.strip().split(separator)
        yield english.strip(), spanish.strip()


def _rows(table: str) -> Iterator[list[str]]:
    """The cells of each line of a table; an indented line continues it."""
    for line in table.replace("\n    ", " ").strip().split("\n"):
        yield [cell.strip() for cell in line.split("|")]


def _kinds(cell: str) -> frozenset[str]:
    """The kinds of noun in a cell, with those in the groups it names."""
    return frozenset(
        kind
        for name in cell.split()
        for kind in word_tables.KIND_GROUPS.get(name, name).split()
    )


def _read_nouns() -> Iterator[Noun]:
    for kind, table in word_tables.NOUNS.items():
        for english, spanish in _pairs(table):
            english, _, english_plural = english.partition("/")
            spanish, _, gender = spanish.partition(":")
            spanish, _, plural = spanish.partition("/")
            feminine = gender == "f" or (
                not gender and re.search("(a|ión|dad)$", spanish) is not None
            )
            yield Noun(
                english,
                english_plural or add_english_s(english),
                spanish,
                plural or spanish_plural(spanish),
                feminine and gender != "m",
                kind,
            )


def _read_adjectives(table: str) -> Iterator[Adjective]:
    for kinds, cell, entries in _rows(table):
        traits = frozenset(cell.split())
        if "predicate" not in traits:
            traits |= {"attribute"}
        for english, spanish in _pairs(entries):
            english, _, comparative = english.partition("/")
            spanish, _, before = spanish.partition("<")
            forms = agreeing_forms(spanish)
            if "/" in spanish:
                forms = tuple(spanish.split("/"))
            yield Adjective(
                english,
                comparative or f"more {english}",
                forms,
                (before, *forms[1:]) if before else (),
                _kinds(kinds),
                traits,
            )


def _read_verbs(table: str) -> tuple[tuple[Verb, ...], dict[str, Verb]]:
    """The verbs, and the first of each Spanish infinitive by its name."""
    verbs, named = [], {}
    for roles, english, spanish, kinds, *irregular in _rows(table):
        infinitive, _, change = spanish.partition(" ")
        verb = Verb(
            english.split()[0].replace("_", " "),
            roles,
            _kinds(kinds),
            {
                "english": english_verb(english, auxiliary="a" in roles),
                "spanish": spanish_verb(infinitive, change, *irregular),
            },
        )
        verbs.append(verb)
        named.setdefault(infinitive, verb)
    return tuple(verbs), named


def _read_noun_slots() -> Iterator[tuple[str, NounSlot]]:
    for slot, kinds, singular, plural, chance in _rows(word_tables.NOUN_SLOTS):
        groups = [
            tuple(name for name in cell.split() if name != "-")
            for cell in (singular, plural)
        ]
        yield slot, NounSlot(_kinds(kinds), *groups, float(chance))


def _read_determiners(table: dict[str, str]) -> dict[str, list[tuple[str, ...]]]:
    """Determiners by group; `_` stands for a space or for none at all."""
    return {
        group: [
            tuple(word.replace("_", " ").strip() for word in entry.split())
            for entry in entries.split(",")
        ]
        for group, entries in table.items()
    }
