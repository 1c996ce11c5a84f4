"""A sentence of the demo corpus: a pattern whose slots are filled with words.

Each slot is drawn once, and written in both languages.
"""

import random
import re
from functools import cache

from demo_corpus import lexicon
from demo_corpus.inflection import ME, THEY, WE, YOU
from demo_corpus.parts_of_speech import (
    IT,
    PRONOUNS,
    Invariable,
    Noun,
    Phrase,
    Word,
    join,
    noun_phrase,
    profession,
)

Pair = tuple[str, str]

SLOT = re.compile(r"\{(\w+)(?::(\w+))?(?:@(\w+))?\}")
VERB_OF_OBJECT = re.compile(r"\{(verb|deed|doing|event|gift|beber)\b")
# Spanish contractions, and the traces of unspoken subjects.
SPANISH_RULES = (
    (re.compile(r"\bla agua\b"), "el agua"),
    (re.compile(r"\b(a|de) el\b"), r"\1l"),
    (re.compile(r"  +"), " "),
    (re.compile(r"(?<=[¿¡]) | (?=[.,?!])|^ "), ""),
)
CAPITAL = re.compile(r"(?:^|(?<=[.?!] ))[¿¡]?\w")


def patterns() -> list[Pair]:
    """Return the English and Spanish templates of all sentences."""
    return [(row[0], row[-1]) for row in lexicon.TABLES["patterns"]]


@cache
def slots(template: str) -> list[tuple[str, ...]]:
    """Split a template into the text before, name, form and target of slots."""
    parts = [part or "" for part in (*SLOT.split(template), "", "", "")]
    return [tuple(parts[start : start + 4]) for start in range(0, len(parts), 4)]


def capitalize(text: str) -> str:
    """Raise the first letter of each sentence in a text."""
    return CAPITAL.sub(lambda match: match[0].upper(), text)


class Sentence:
    """A sentence in both languages: a pattern, one of `patterns()`, with words.

    Attributes:
        english, spanish: The texts.
        drawn: The word or phrase of each slot.
        combinations: The `(word, noun)` pairs that were drawn.
    """

    def __init__(self, pattern: Pair, rng: random.Random):
        self._templates = dict(zip(("english", "spanish"), pattern, strict=True))
        self._rng = rng
        self.drawn: dict[str, Invariable | Phrase | Word] = {"it": IT}
        self.combinations: set[Pair] = set()
        english, spanish = map(self._fill, self._templates)
        for rule, replacement in SPANISH_RULES:
            spanish = rule.sub(replacement, spanish)
        self.english, self.spanish = capitalize(english), capitalize(spanish)

    def _fill(self, language: str) -> str:
        text = ""
        for literal, slot, form, target in slots(self._templates[language]):
            text += literal
            if slot:
                word = self.get(slot, target or "subject")
                subject = self.drawn.get("subject", IT)
                agreeing = self.get(target) if target else subject
                text += word.write(language, form, agreeing)
        return text

    def get(self, slot: str, target: str = "subject") -> Invariable | Phrase | Word:
        """Look up what fills a slot; draw it when it is first met."""
        if slot not in self.drawn:
            self.drawn[slot] = self._draw(slot.rstrip("12"), target)
        return self.drawn[slot]

    def _draw(self, name: str, target: str) -> Invariable | Phrase | Word:
        if name in lexicon.NAMED_VERBS:
            return lexicon.NAMED_VERBS[name]
        if name in lexicon.VERB_SLOTS:
            return self._rng.choice(lexicon.VERB_SLOTS[name])
        if name in lexicon.PHRASES:
            return self._draw_invariable(name)
        if name in lexicon.NOUN_SLOTS:
            return self._draw_noun_phrase(name)
        if name in lexicon.ADJECTIVE_SLOTS:
            noun = self.get(target).noun
            return self._draw_adjective(noun, lexicon.ADJECTIVE_SLOTS[name])
        return getattr(self, f"_draw_{name}")()

    def _draw_invariable(self, name: str) -> Invariable:
        """Draw a phrase that is not in the sentence yet."""
        phrases = lexicon.PHRASES[name]
        while (phrase := self._rng.choice(phrases)) in self.drawn.values():
            pass
        return phrase

    def _draw_noun_phrase(self, name: str) -> Phrase:
        kinds, singular_groups, plural_groups, chance = lexicon.NOUN_SLOTS[name]
        noun, plural = self._draw_noun(kinds), False
        if noun.kind in lexicon.UNCOUNTABLE_KINDS:
            groups = [g for g in singular_groups if g != "a"] or plural_groups
        else:
            plural = not singular_groups or (
                bool(plural_groups) and self._rng.random() < 0.4
            )
            groups = plural_groups if plural else singular_groups
        adjective = None
        if name == "ordered":
            adjective = self._rng.choice(lexicon.ORDINALS)
        elif self._rng.random() < chance:
            adjective = self._draw_adjective(noun)
        determiners = lexicon.DETERMINERS[plural][self._rng.choice(groups)]
        return noun_phrase(self._rng.choice(determiners), noun, plural, adjective)

    def _draw_noun(self, kinds: frozenset[str]) -> Noun:
        """Draw a noun; one that suits the verb if its kinds are `=`."""
        if kinds != {"="}:
            return self._rng.choice(lexicon.nouns_of_kinds(kinds))
        verb = self.get(VERB_OF_OBJECT.search(self._templates["english"])[1])
        noun = self._rng.choice(lexicon.nouns_of_kinds(verb.kinds))
        self.combinations.add((verb.english, noun.english))
        return noun

    def _draw_adjective(self, noun: Noun | None, trait: str = "") -> Word:
        """Draw an adjective that suits a noun, or a person, and has a trait."""
        kind = noun.kind if noun else "person"
        adjective = self._rng.choice(lexicon.adjectives_for(kind, trait))
        if noun:
            self.combinations.add((adjective.english, noun.english))
        return adjective

    def _draw_pronoun(self, *excluded: int) -> Phrase:
        """Draw a personal pronoun, but for some persons."""
        return self._rng.choice([p for p in PRONOUNS if p.person not in excluded])

    def _draw_subject(self) -> Phrase:
        if self._rng.random() < 0.5:
            return self._draw_pronoun()
        if self._rng.random() < 0.1:
            name = self._rng.choice(lexicon.NAMES)
            return Phrase(f"{name.english} and I", f"{name.spanish} y yo", person=WE)
        return self._draw_human()

    def _draw_human(self, singular: bool = False) -> Phrase:
        """Draw a name, a couple of names, a relative or someone with a job."""
        chance = self._rng.random()
        if chance < 0.4:
            return self._draw_name(couple=chance < 0.05 and not singular)
        if chance < 0.75:
            return self._draw_relative(singular)
        return self._draw_noun_phrase("someone" if singular else "person")

    def _draw_holder(self) -> Phrase:
        """Draw someone who can own: a human in the singular."""
        return self._draw_human(singular=True)

    _draw_company = _draw_human

    def _draw_asked(self) -> Phrase:
        """Draw someone else: a pronoun or a human."""
        pronoun = self._rng.random() < 0.4
        return self._draw_pronoun(ME, WE) if pronoun else self._draw_human()

    def _draw_sufferer(self) -> Phrase:
        """Draw someone whose body hurts: a pronoun or a human in the singular."""
        pronoun = self._rng.random() < 0.4
        return self._draw_pronoun(WE, THEY) if pronoun else self._draw_holder()

    def _draw_name(self, couple: bool = False) -> Phrase:
        """Draw one or two names that are not in the sentence yet."""
        drawn = " ".join(
            word.english for word in self.drawn.values() if isinstance(word, Phrase)
        )
        names = [name for name in lexicon.NAMES if name.english not in drawn]
        return join(*self._rng.sample(names, 2)) if couple else self._rng.choice(names)

    def _draw_kin(self) -> Phrase:
        """Draw someone whose job is not named yet."""
        chance = self._rng.random()
        if chance < 0.3:
            return self._draw_pronoun()
        if chance < 0.6:
            return self._rng.choice(lexicon.NAMES)
        return self._draw_relative()

    def _draw_relative(self, singular: bool = False) -> Phrase:
        kinds = lexicon.FAMILY_KINDS
        noun = self._draw_noun(kinds - {"couple"} if singular else kinds)
        can_be_plural = noun.kind == "relative" and not singular
        plural = noun.kind == "couple" or (can_be_plural and self._rng.random() < 0.25)
        group = "partner" if noun.kind == "spouse" else "possessive"
        determiner = self._rng.choice(lexicon.DETERMINERS[plural][group])
        return noun_phrase(determiner, noun, plural)

    def _draw_whom(self) -> Phrase:
        """Draw a personal pronoun other than the subject."""
        person = self.get("subject").person
        excluded = {ME: (ME, WE), WE: (ME, WE), YOU: (YOU,)}.get(person, ())
        return self._draw_pronoun(*excluded)

    def _draw_profession(self) -> Word:
        return profession(self._draw_noun(frozenset({"job"})))

    def _draw_owner(self) -> Word:
        return self._rng.choice(lexicon.OWNERS)

    def _draw_peer(self) -> Phrase:
        """Draw another thing of the kind and number of the slot `thing`."""
        thing = self.get("thing")
        plural = thing.person == THEY
        nouns = lexicon.nouns_of_kinds(frozenset({thing.noun.kind}))
        noun = self._rng.choice([n for n in nouns if n != thing.noun])
        return noun_phrase(lexicon.DETERMINERS[plural]["the"][0], noun, plural)

    def _draw_ago(self) -> Invariable:
        """Draw a time in the past, such as "yesterday" or "two weeks ago"."""
        if self._rng.random() < 0.5:
            return self._draw_invariable("recently")
        number, unit = self._draw_invariable("number"), self._draw_invariable("unit")
        return Invariable(
            f"{number.english} {unit.english} ago",
            f"hace {number.spanish} {unit.spanish}",
        )

    def _draw_hour(self) -> Invariable:
        """Draw a time of the day, such as "at half past two"."""
        number = self._draw_invariable("number")
        english, spanish = f"at half past {number.english}", f"{number.spanish} y media"
        if self._rng.random() < 0.5:
            english, spanish = f"at {number.english} o'clock", number.spanish
        return Invariable(english, f"a las {spanish}")
