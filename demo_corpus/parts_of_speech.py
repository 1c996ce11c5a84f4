"""Words and phrases of the demo corpus, which write themselves in any form."""

import re
from dataclasses import dataclass

from demo_corpus.inflection import HE, ME, THEY, WE, YOU, Forms, agreeing_forms

OBJECT_PRONOUNS = {
    "I": "me", "you": "you", "he": "him", "she": "her", "it": "it", "we": "us",
    "they": "them",
}  # fmt: skip
POSSESSIVES = {"I": "my", "you": "your", "he": "his", "she": "her"}
CLITICS = {
    "lo": ("me", "te", "lo", "nos", "los"),
    "le": ("me", "te", "le", "nos", "les"),
    "se": ("me", "te", "se", "nos", "se"),
}
AGREEING = {
    "the": ("el", "la", "los", "las"),
    "this": ("este", "esta", "estos", "estas"),
    "many": ("", "", "cuántos", "cuántas"),
}


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
    human: bool


@dataclass(frozen=True)
class Word:
    """A verb or an adjective.

    Attributes:
        english: The base or the positive.
        forms: Its forms by language.
        kinds: Kinds of its objects, or of the nouns that it suits.
        traits: The roles of a verb, or the copula and other traits.
        before_noun: Spanish forms before a noun; none if it follows it.
    """

    english: str
    forms: dict[str, Forms]
    kinds: frozenset[str] = frozenset()
    traits: frozenset[str] = frozenset()
    before_noun: tuple[str, ...] = ()

    def write(self, language: str, form: str, target: "Phrase") -> str:
        """Write in a form, "" by default, agreeing with `target`."""
        forms = self.forms[language][form]
        return forms[{1: 0, 4: target.agreement, 5: target.person}[len(forms)]]


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, a name or a pronoun, which other words agree with.

    The Spanish is empty for a pronoun that goes without saying. Pronouns and names
    have no noun.
    """

    english: str
    spanish: str
    person: int = HE
    feminine: bool = False
    noun: Noun | None = None

    @property
    def agreement(self) -> int:
        """Index into masculine, feminine, and the plurals of both."""
        return 2 * (self.person in (WE, THEY)) + self.feminine

    def write(self, language: str, form: str, target: "Phrase") -> str:
        """Write in a form: `to` as a person who something is done to, `lo`
        and `le` as an object pronoun, `se` as a reflexive one, `again` as a
        subject pronoun, `of` as an owner, `the`, `this` and `many` with it.
        """
        third = ("he", "she")[self.feminine]
        if self.noun and not self.noun.human:
            third = "it"
        pronoun = ("I", "you", third, "we", "they")[self.person]
        match language, form:
            case _, "":
                return getattr(self, language)
            case "english", "lo" | "le":
                return OBJECT_PRONOUNS[pronoun]
            case "english", "of":
                return POSSESSIVES.get(self.english, f"{self.english}'s")
            case "english", "this":
                return "these" if self.person == THEY else "this"
            case "english", "again":
                return pronoun
            case "spanish", "to":
                # The personal "a" before each name: "a Luis y a mí".
                spanish = re.sub(" y yo$", " y mí", self.spanish)
                return spanish and f"a {spanish}".replace(" y ", " y a ")
            case "spanish", "the":
                return f"{AGREEING[form][self.agreement]} {self.spanish}"
            case "spanish", "this" | "many":
                return AGREEING[form][self.agreement]
            case "spanish", "lo" if self.feminine and self.person in (HE, THEY):
                return ("la", "las")[self.person == THEY]
            case _:
                return CLITICS[form][self.person]


PRONOUNS = (
    Phrase("I", "", ME),
    Phrase("you", "", YOU),
    Phrase("he", "él", HE),
    Phrase("she", "ella", HE, feminine=True),
    Phrase("we", "", WE),
    Phrase("they", "ellos", THEY),
)
IT = Phrase("it", "", HE)


def adjective(
    english: str, comparative: str, spanish: tuple[str, ...], **attributes: object
) -> Word:
    """Make an adjective, with the forms "more", "most" and, for the article
    that stands before it in English, "article".
    """
    superlative = re.sub("er$", "est", comparative.replace("more", "most"))
    forms = {
        "english": {
            "": (english,),
            "more": (comparative,),
            "most": (superlative,),
            "article": (english, english, with_article(english), english, english),
        },
        "spanish": {"": spanish, "more": tuple(f"más {form}" for form in spanish)},
    }
    return Word(english, forms, **attributes)


def profession(noun: Noun) -> Word:
    """Make a job a predicate: "is a nurse", but "es enfermera"."""
    english = (with_article(noun.english),) * 3 + (noun.english_plural,) * 2
    forms = {"english": {"": english}, "spanish": {"": agreeing_forms(noun.spanish)}}
    return Word(noun.english, forms)


def noun_phrase(
    determiner: list[str], noun: Noun, plural: bool, adjective: Word | None = None
) -> Phrase:
    """Join a determiner (English, Spanish masculine, feminine), a noun and perhaps
    an adjective, which mostly follows a Spanish noun.
    """
    english = noun.english_plural if plural else noun.english
    spanish = noun.spanish_plural if plural else noun.spanish
    if adjective:
        english = f"{adjective.english} {english}"
        form = 2 * plural + noun.feminine
        if adjective.before_noun:
            spanish = f"{adjective.before_noun[form]} {spanish}"
        else:
            spanish = f"{spanish} {adjective.forms['spanish'][''][form]}"
    article = determiner[0]
    english = with_article(english) if article == "a" else f"{article} {english}"
    spanish = f"{determiner[1 + noun.feminine]} {spanish}"
    person = THEY if plural else HE
    return Phrase(english.strip(), spanish.strip(), person, noun.feminine, noun)


def join(first: Phrase, second: Phrase) -> Phrase:
    """Join two phrases by "and"; Spanish calls a mixed couple masculine."""
    english = f"{first.english} and {second.english}"
    spanish = f"{first.spanish} y {second.spanish}"
    return Phrase(english, spanish, THEY, first.feminine and second.feminine)


def with_article(english: str) -> str:
    """Put "a" or "an" before a word of the lexicon."""
    vowel = english[0] in "aeiouAEIO" or english.startswith("honest")
    return f"{'an' if vowel else 'a'} {english}"
