"""Words and phrases of the demo corpus.

Each writes itself in either language and in any form.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from demo_corpus import word_tables
from demo_corpus.inflection import HE, ME, THEY, WE, YOU, Conjugation, agreeing_forms


class Word(Protocol):
    """A word or phrase that can fill a slot."""

    def write(self, language: str, form: str, target: "Phrase") -> str:
        """Write in a form, "" by default, agreeing with `target`."""


@dataclass(frozen=True)
class Invariable:
    """A phrase that is the same in every sentence."""

    english: str
    spanish: str

    def write(self, language: str, form: str, target: "Phrase") -> str:
        return getattr(self, language)


@dataclass(frozen=True)
class Noun:
    """A noun; `feminine` is its Spanish gender."""

    english: str
    english_plural: str
    spanish: str
    spanish_plural: str
    feminine: bool
    kind: str


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or a pronoun, which other words agree with.

    Args:
        english: The phrase, in the case of a subject.
        spanish: The phrase, empty for a pronoun that goes without saying.
        person: Int from `ME` to `THEY`.
        feminine: Bool, the Spanish gender.
        noun: Its noun; none for pronouns and names.
        is_pronoun: Bool, whether it is a pronoun.
    """

    english: str
    spanish: str
    person: int = HE
    feminine: bool = False
    noun: Noun | None = None
    is_pronoun: bool = False

    @property
    def agreement(self) -> int:
        """Index into masculine, feminine, and the plurals of both."""
        return 2 * (self.person in (WE, THEY)) + self.feminine

    def write(self, language: str, form: str, target: "Phrase") -> str:
        """Write in a form: `to` as a person who something is done to, `lo`
        and `le` as an object pronoun, `se` as a reflexive one, `again` as a
        subject pronoun, `of` as an owner, `the`, `this` and `many` with it.
        """
        if not form:
            return getattr(self, language)
        if language == "english":
            return self._write_english(form)
        return self._write_spanish(form)

    def _write_english(self, form: str) -> str:
        human = self.noun is None or self.noun.kind in word_tables.PERSON_KINDS
        third = ("he", "she")[self.feminine] if human else "it"
        pronoun = ("I", "you", third, "we", "they")[self.person]
        if form in ("lo", "le"):
            return OBJECT_PRONOUNS[pronoun]
        if form == "of":
            possessive = f"{self.english}'s"
            return POSSESSIVES[pronoun] if self.is_pronoun else possessive
        if form == "this":
            return "these" if self.person == THEY else "this"
        return pronoun if form == "again" else self.english

    def _write_spanish(self, form: str) -> str:
        if form == "to":
            return _as_object(self.spanish)
        if form == "the":
            return f"{DEFINITE[self.agreement]} {self.spanish}"
        if form == "this":
            return THIS[self.agreement]
        if form == "many":
            return ("", "", "cuántos", "cuántas")[self.agreement]
        if form in ("lo", "le", "se"):
            clitic = CLITICS[form][self.person]
            feminine = self.feminine and form == "lo" and clitic != "nos"
            return clitic.replace("o", "a") if feminine else clitic
        return "" if form == "again" else self.spanish


def _as_object(spanish: str) -> str:
    """Put the personal "a" before each name: "a Luis y a mí"."""
    spanish = re.sub(" y yo$", " y mí", spanish)
    return spanish and f"a {spanish}".replace(" y ", " y a ")


@dataclass(frozen=True)
class Adjective:
    """An adjective with the four Spanish forms, also of those before nouns.

    Args:
        english: The positive.
        comparative: The comparative, "more ..." or one word.
        spanish: Masculine, feminine and the plurals of both.
        forms_before_noun: The same before a noun; none if it follows it.
        kinds: Kinds of noun that it suits.
        traits: Its copula and other traits in `word_tables.ADJECTIVES`.
    """

    english: str
    comparative: str
    spanish: tuple[str, ...]
    forms_before_noun: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()

    def write(self, language: str, form: str, target: Phrase) -> str:
        """Write as predicate of `target`, in the form `more` or `most`, or
        with the `article` that stands before it in English.
        """
        if language == "spanish":
            positive = self.spanish[target.agreement]
            return f"más {positive}" if form == "more" else positive
        if form == "more":
            return self.comparative
        if form == "most":
            return re.sub("er$", "est", self.comparative.replace("more", "most"))
        if form == "article" and target.person == HE:
            return with_article(self.english)
        return self.english


@dataclass(frozen=True)
class Profession:
    """A job as a predicate: "is a nurse", but "es enfermera"."""

    noun: Noun

    def write(self, language: str, form: str, target: Phrase) -> str:
        if language == "spanish":
            return agreeing_forms(self.noun.spanish)[target.agreement]
        if target.person in (WE, THEY):
            return self.noun.english_plural
        return with_article(self.noun.english)


@dataclass(frozen=True)
class Verb:
    """A verb; a form is a tuple by person, or a string if it has none."""

    english: str
    roles: str
    kinds: frozenset[str]
    forms: dict[str, Conjugation]

    def write(self, language: str, form: str, target: Phrase) -> str:
        """Write in a form (`present` by default) for the person `target`."""
        forms = self.forms[language][form or "present"]
        return forms if isinstance(forms, str) else forms[target.person]


PRONOUNS = (
    Phrase("I", "", ME, is_pronoun=True),
    Phrase("you", "", YOU, is_pronoun=True),
    Phrase("he", "él", HE, is_pronoun=True),
    Phrase("she", "ella", HE, feminine=True, is_pronoun=True),
    Phrase("we", "", WE, is_pronoun=True),
    Phrase("they", "ellos", THEY, is_pronoun=True),
)
IT = Phrase("it", "", HE)
# Stands for the noun that pronouns and names do not have.
UNNAMED_PERSON = Noun("", "", "", "", False, "person")
FAMILY_KINDS = frozenset(word_tables.PERSON_KINDS) - {"person", "job"}
OBJECT_PRONOUNS = {
    "I": "me",
    "you": "you",
    "he": "him",
    "she": "her",
    "it": "it",
    "we": "us",
    "they": "them",
}
POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her"}
CLITICS = {
    "lo": ("me", "te", "lo", "nos", "los"),
    "le": ("me", "te", "le", "nos", "les"),
    "se": ("me", "te", "se", "nos", "se"),
}
DEFINITE = ("el", "la", "los", "las")
THIS = ("este", "esta", "estos", "estas")


def noun_phrase(
    determiner: tuple[str, ...],
    noun: Noun,
    plural: bool,
    adjective: Adjective | None = None,
) -> Phrase:
    """Join a determiner, a noun and perhaps an adjective in both languages.

    Args:
        determiner: English, Spanish masculine and feminine determiner.
        noun: The noun.
        plural: Bool, the number of the phrase.
        adjective: Goes before an English noun and mostly after a Spanish one.

    Returns:
        A `Phrase`.
    """
    english = noun.english_plural if plural else noun.english
    spanish = noun.spanish_plural if plural else noun.spanish
    if adjective:
        english = f"{adjective.english} {english}"
        form = 2 * plural + noun.feminine
        if adjective.forms_before_noun:
            spanish = f"{adjective.forms_before_noun[form]} {spanish}"
        else:
            spanish = f"{spanish} {adjective.spanish[form]}"
    if determiner[0] == "a":
        english = with_article(english)
    else:
        english = f"{determiner[0]} {english}".strip()
    return Phrase(
        english,
        f"{determiner[1 + noun.feminine]} {spanish}".strip(),
        person=THEY if plural else HE,
        feminine=noun.feminine,
        noun=noun,
    )


def join(first: Phrase, second: Phrase) -> Phrase:
    """Join two phrases by "and"; Spanish calls a mixed couple masculine."""
    return Phrase(
        f"{first.english} and {second.english}",
        f"{first.spanish} y {second.spanish}",
        person=THEY,
        feminine=first.feminine and second.feminine,
    )


def with_article(english: str) -> str:
    """Put "a" or "an" before a word of the lexicon."""
    vowel = english[0] in "aeiouAEIO" or english.startswith("honest")
    return f"{'an' if vowel else 'a'} {english}"
