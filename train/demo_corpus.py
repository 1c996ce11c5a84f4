"""A bilingual grammar that generates the pairs of the demo data set.

A fresh machine may have no network, so the demo trains on English-Spanish
sentences that `demo_corpus` makes from the tables of `train.demo_words`. A
sentence is a pattern with slots, such as `{subject} {verb} {object}.`; each
slot is drawn once and written in both languages, which differ in agreement,
conjugation and word order. The English decides the Spanish: "you" is always
"tú", and persons of unknown gender ("I", "they", "the teacher") are masculine.
"""

import random
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from train import demo_words

Pair = tuple[str, str]
# The forms of a verb by name: one, or one for each person.
Forms = dict[str, str | tuple[str, ...]]

SIZES = {"train": 20_000, "validation": 500, "test": 500, "unseen": 500}
# The share of the combinations of any one word that training never sees.
HELD_OUT_SHARE = 0.1
# A pattern without a new sentence in so many draws is taken to be exhausted.
MAX_DRAWS = 100

# The persons, as indices of every conjugation; there is no "vosotros".
ME, YOU, HE, WE, THEY = range(5)


def demo_corpus(seed: int = 0) -> dict[str, list[Pair]]:
    """Generate the splits of the demo data set.

    The patterns occur about equally often, no English sentence occurs twice,
    and every word of the other splits occurs in "train".

    Args:
        seed: Int. Equal seeds give equal corpora.

    Returns:
        Lists of `(english, spanish)` by split: "train" (20,000 pairs),
        "validation", "test" and "unseen" (500 each). Each sentence of
        "unseen" has one of `held_out_combinations(seed)` and no other
        sentence has any: its words are known, but not together.

    Example:
        >>> english, spanish = demo_corpus(seed=0)["train"][0]
    """
    rng = random.Random(seed)
    held_out = held_out_combinations(seed)

    spare = SIZES["train"] // 20  # In case of words that training lacks.
    seen = _generate(
        rng,
        sum(SIZES.values()) - SIZES["unseen"] + spare,
        accept=lambda sentence: not sentence.combinations & held_out,
    )
    train, rest = seen[: SIZES["train"]], seen[SIZES["train"] :]

    known = {token for sentence in train for token in _tokens(sentence)}
    rest = [
        sentence for sentence in rest if known.issuperset(_tokens(sentence))
    ]
    unseen = _generate(
        rng,
        SIZES["unseen"],
        accept=lambda sentence: (
            sentence.combinations & held_out
            and known.issuperset(_tokens(sentence))
        ),
    )

    end = SIZES["validation"] + SIZES["test"]
    splits = {
        "train": train,
        "validation": rest[: SIZES["validation"]],
        "test": rest[SIZES["validation"] : end],
        "unseen": unseen,
    }
    return {
        split: [(sentence.english, sentence.spanish) for sentence in sentences]
        for split, sentences in splits.items()
    }


def held_out_combinations(seed: int = 0) -> set[Pair]:
    """Choose the combinations of words that only "unseen" contains.

    Args:
        seed: Int. Equal seeds give equal combinations.

    Returns:
        Pairs of English words from the lexicon, `(adjective, noun)` or
        `(verb, object noun)`. Most combinations of each word are kept.
    """
    words = lexicon()
    # "They have broken cups" shows "broken cups" without the adjective.
    participles = {verb.forms["english"]["participle"] for verb in words.verbs}
    combinations = [
        (word.english, noun.english)
        for word in words.adjectives + words.verbs
        for noun in words.nouns
        if noun.kind in word.kinds and word.english not in participles
    ]
    total = Counter(word for pair in combinations for word in pair)
    random.Random(seed).shuffle(combinations)
    count, held_out = Counter(), set()
    for pair in combinations:
        if all(count[word] < HELD_OUT_SHARE * total[word] - 1 for word in pair):
            held_out.add(pair)
            count.update(pair)
    return held_out


@dataclass(frozen=True)
class Sentence:
    """A pair of sentences and the `(word, noun)` combinations in it."""

    english: str
    spanish: str
    combinations: frozenset[Pair]


def _generate(
    rng: random.Random, size: int, accept: Callable[[Sentence], bool]
) -> list[Sentence]:
    """Draw `size` accepted sentences, in turn from each pattern; shuffle."""
    sentences: dict[str, Sentence] = {}
    active = list(patterns())
    while active and len(sentences) < size:
        for pattern in list(active):
            for _ in range(MAX_DRAWS):
                sentence = draw_sentence(pattern, rng)
                if sentence.english not in sentences and accept(sentence):
                    sentences[sentence.english] = sentence
                    break
            else:
                active.remove(pattern)
    drawn = list(sentences.values())[:size]
    rng.shuffle(drawn)
    return drawn


def _tokens(sentence: Sentence) -> set[Pair]:
    """The words and marks of both sides, each with its language."""
    return {
        (language, token)
        for language in ("english", "spanish")
        for token in re.findall(r"\w+|[^\w\s]", getattr(sentence, language))
    }


# Sentences and their slots.

SLOT = re.compile(r"\{(\w+)(?::(\w+))?(?:@(\w+))?\}")
# Spanish contractions, and the traces of unspoken subjects.
SPANISH_RULES = (
    (re.compile(r"\bla agua\b"), "el agua"),
    (re.compile(r"\b(a|de) el\b"), r"\1l"),
    (re.compile(r"  +"), " "),
    (re.compile(r"(?<=[¿¡]) | (?=[.,?!])|^ "), ""),
)
CAPITAL = re.compile(r"(?:^|(?<=[.?!] ))[¿¡]?\w")


@cache
def patterns() -> tuple[Pair, ...]:
    """The English and Spanish templates of all sentences."""
    table = demo_words.PATTERNS.strip().replace("\n= ", "=").split("\n")
    rows = [row.split("=") for row in table]
    return tuple((row[0], row[-1]) for row in rows)


@cache
def slots(template: str) -> list[tuple[str, str, str, str]]:
    """Split a template into the text before, name, form and target of slots.

    Text after the last slot comes with an empty name.
    """
    parts, end = [], 0
    for match in SLOT.finditer(template):
        parts.append((template[end : match.start()], *match.groups(default="")))
        end = match.end()
    return [*parts, (template[end:], "", "", "")]


def draw_sentence(
    pattern: Pair, rng: random.Random, words: dict[str, "Word"] | None = None
) -> Sentence:
    """Fill the slots of a pattern.

    Args:
        pattern: One of `patterns()`, or another pair of templates.
        rng: Source of the choices.
        words: What fills some of the slots, by slot; the rest is drawn.

    Returns:
        A `Sentence` with its words in both languages.
    """
    scene = Scene(pattern, rng)
    scene.drawn.update(words or {})
    english, spanish = scene.fill("english"), scene.fill("spanish")
    for rule, replacement in SPANISH_RULES:
        spanish = rule.sub(replacement, spanish)
    return Sentence(
        _capitalize(english),
        _capitalize(spanish),
        frozenset(scene.combinations),
    )


def _capitalize(text: str) -> str:
    """Raise the first letter of each sentence in a text."""
    return CAPITAL.sub(lambda match: match[0].upper(), text)


class Scene:
    """What is drawn for the slots of one sentence.

    Args:
        pattern: The English and the Spanish template.
        rng: Source of the choices.

    Attributes:
        combinations: The `(word, noun)` pairs drawn so far.
    """

    def __init__(self, pattern: Pair, rng: random.Random):
        self.templates = dict(zip(("english", "spanish"), pattern, strict=True))
        self.rng = rng
        self.drawn: dict[str, Word] = {}
        self.combinations: set[Pair] = set()

    def fill(self, language: str) -> str:
        """Write the template of a language."""
        text = ""
        for literal, slot, form, target in slots(self.templates[language]):
            text += literal
            if slot:
                word = self.get(slot, target or "subject")
                subject = self.drawn.get("subject", THIRD_PERSON)
                agreeing = self.get(target) if target else subject
                text += word.write(language, form, agreeing)
        return text

    def get(self, slot: str, target: str = "subject") -> "Word":
        """Look up what fills a slot; draw it when it is first met."""
        if slot not in self.drawn:
            self.drawn[slot] = self._draw(slot.rstrip("12"), target)
        return self.drawn[slot]

    def _draw(self, name: str, target: str) -> "Word":
        words = lexicon()
        if name in words.named_verbs:
            return words.named_verbs[name]
        if name in words.verbs_by_role:
            return self.rng.choice(words.verbs_by_role[name])
        if name in words.phrases:
            return self._choose_new(words.phrases[name])
        if name in words.noun_slots:
            return self._draw_noun_phrase(words.noun_slots[name], name)
        if name in ADJECTIVE_SLOTS:
            return self._draw_predicate(ADJECTIVE_SLOTS[name], target)
        return getattr(self, f"_draw_{name}")()

    def _draw_noun_phrase(self, slot: "NounSlot", name: str) -> "Phrase":
        noun = self._draw_noun(slot)
        plural = self._choose_number(slot, noun)
        adjective = None
        if name == "ordered":
            adjective = self.rng.choice(lexicon().ordinals)
        elif self.rng.random() < slot.adjective_chance:
            adjective = self._choose_adjective(noun, "attribute")
        determiner = self._choose_determiner(slot, noun, plural)
        return noun_phrase(determiner, noun, plural, adjective)

    def _draw_noun(self, slot: "NounSlot") -> "Noun":
        """Draw a noun that suits the slot and, if it is an object, the verb."""
        if slot.kinds != {"="}:
            return self._choose_noun(slot.kinds)
        verb = self.get(VERB_OF_OBJECT.search(self.templates["english"])[1])
        noun = self._choose_noun(verb.kinds)
        self.combinations.add((verb.english, noun.english))
        return noun

    def _choose_number(self, slot: "NounSlot", noun: "Noun") -> bool:
        """Choose whether a phrase is plural, as far as it can be."""
        if noun.kind in demo_words.MASS or not slot.plural:
            return False
        return not slot.singular or self.rng.random() < 0.4

    def _choose_determiner(
        self, slot: "NounSlot", noun: "Noun", plural: bool
    ) -> tuple[str, ...]:
        groups = slot.plural if plural else slot.singular
        if noun.kind in demo_words.MASS:
            groups = [g for g in slot.singular if g != "a"] or slot.plural
        table = lexicon().determiners[plural]
        return self.rng.choice(table[self.rng.choice(groups)])

    def _choose_new(self, phrases: list["Word"]) -> "Word":
        """Choose a phrase that is not in the scene yet."""
        while (phrase := self.rng.choice(phrases)) in self.drawn.values():
            pass
        return phrase

    def _choose_noun(self, kinds: frozenset[str]) -> "Noun":
        return self.rng.choice(lexicon().nouns_of_kinds(kinds))

    def _choose_adjective(self, noun: "Noun", trait: str) -> "Adjective":
        """Choose an adjective that suits a noun and has a trait."""
        adjectives = lexicon().adjectives_for(noun.kind, trait)
        adjective = self.rng.choice(adjectives)
        if noun.english:
            self.combinations.add((adjective.english, noun.english))
        return adjective

    def _draw_predicate(self, trait: str, target: str) -> "Adjective":
        noun = self.get(target).noun or SOMEONE
        return self._choose_adjective(noun, trait)

    def _draw_subject(self) -> "Phrase":
        if self.rng.random() < 0.5:
            return self.rng.choice(PRONOUNS)
        if self.rng.random() < 0.1:
            name = self.rng.choice(lexicon().names)
            return Phrase(
                f"{name.english} and I", f"{name.spanish} y yo", person=WE
            )
        return self._draw_human()

    def _draw_asked(self) -> "Phrase":
        if self.rng.random() < 0.4:
            return self.rng.choice(
                [p for p in PRONOUNS if p.person not in (ME, WE)]
            )
        return self._draw_human()

    def _draw_human(self, singular: bool = False) -> "Phrase":
        """A name, a couple of names, a relative or someone with a job."""
        chance = self.rng.random()
        if chance < 0.4:
            return self._draw_named(couple=chance < 0.05 and not singular)
        if chance < 0.75:
            return self._draw_relative(singular)
        return self._draw("someone" if singular else "person", "")

    def _draw_named(self, couple: bool) -> "Phrase":
        """One or two names that are not in the scene yet."""
        drawn = " ".join(
            word.english
            for word in self.drawn.values()
            if isinstance(word, Phrase)
        )
        names = [name for name in lexicon().names if name.english not in drawn]
        if couple:
            return join(*self.rng.sample(names, 2))
        return self.rng.choice(names)

    _draw_company = _draw_human

    def _draw_name(self) -> "Phrase":
        return self._draw_named(couple=False)

    def _draw_kin(self) -> "Phrase":
        """Someone whose job is not named yet."""
        chance = self.rng.random()
        if chance < 0.3:
            return self.rng.choice(PRONOUNS)
        if chance < 0.6:
            return self.rng.choice(lexicon().names)
        return self._draw_relative()

    def _draw_relative(self, singular: bool = False) -> "Phrase":
        kinds = RELATIVES - {"couple"} if singular else RELATIVES
        noun = self._choose_noun(kinds)
        can_be_plural = noun.kind == "relative" and not singular
        plural = noun.kind == "couple" or (
            can_be_plural and self.rng.random() < 0.25
        )
        group = "partner" if noun.kind == "spouse" else "possessive"
        determiner = self.rng.choice(lexicon().determiners[plural][group])
        return noun_phrase(determiner, noun, plural)

    def _draw_holder(self) -> "Phrase":
        """Someone who can own: a human in the singular."""
        return self._draw_human(singular=True)

    def _draw_sufferer(self) -> "Phrase":
        """Someone whose body hurts: a pronoun or a human in the singular."""
        if self.rng.random() < 0.4:
            return self.rng.choice([p for p in PRONOUNS if p.person < WE])
        return self._draw_holder()

    def _draw_whom(self) -> "Phrase":
        """A personal pronoun other than the subject."""
        subject = self.get("subject")
        group = next((g for g in ((ME, WE), (YOU,)) if subject.person in g), ())
        return self.rng.choice([p for p in PRONOUNS if p.person not in group])

    def _draw_profession(self) -> "Profession":
        return Profession(self._choose_noun(frozenset({"job"})))

    def _draw_owner(self) -> "Adjective":
        return self.rng.choice(lexicon().owners)

    def _draw_it(self) -> "Phrase":
        return THIRD_PERSON

    def _draw_peer(self) -> "Phrase":
        """Another thing of the kind and number of the slot `thing`."""
        thing = self.get("thing")
        plural = thing.person == THEY
        nouns = lexicon().nouns_of_kinds(frozenset({thing.noun.kind}))
        noun = self.rng.choice([n for n in nouns if n != thing.noun])
        return noun_phrase(
            lexicon().determiners[plural]["the"][0], noun, plural
        )

    def _draw_ago(self) -> "Invariable":
        """A time in the past, such as "yesterday" or "two weeks ago"."""
        if self.rng.random() < 0.5:
            return self._draw("recently", "")
        number, unit = self._draw("number", ""), self._draw("unit", "")
        return Invariable(
            f"{number.english} {unit.english} ago",
            f"hace {number.spanish} {unit.spanish}",
        )

    def _draw_hour(self) -> "Invariable":
        """A time of the day, such as "at half past two"."""
        number = self._draw("number", "")
        if self.rng.random() < 0.5:
            return Invariable(
                f"at {number.english} o'clock", f"a las {number.spanish}"
            )
        return Invariable(
            f"at half past {number.english}", f"a las {number.spanish} y media"
        )


# Words and phrases: each writes itself in either language and any form.


class Word(Protocol):
    """What can fill a slot."""

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
        human = self.noun is None or self.noun.kind in demo_words.PEOPLE
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
        before: The same before a noun, or none if it follows the noun.
        kinds: Kinds of noun that it suits.
        traits: Its copula and other traits in `demo_words.ADJECTIVES`.
    """

    english: str
    comparative: str
    spanish: tuple[str, ...]
    before: tuple[str, ...] = ()
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
            return re.sub(
                "er$", "est", self.comparative.replace("more", "most")
            )
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
    forms: dict[str, Forms]

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
THIRD_PERSON = Phrase("it", "", HE)
# Stands for the noun that pronouns and names do not have.
SOMEONE = Noun("", "", "", "", False, "person")
RELATIVES = frozenset(demo_words.PEOPLE) - {"person", "job"}
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
        if adjective.before:
            spanish = f"{adjective.before[form]} {spanish}"
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


# Inflection by rule.


def english_s(word: str, after_o: str = "s") -> str:
    """Add the s of the plural or, with "es" after o, of the third person."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + (after_o if word.endswith("o") else "s")


def spanish_plural(word: str) -> str:
    """Make the plural of a Spanish noun or adjective."""
    if re.search(r"[aeiouáéó]$", word):
        return f"{word}s"
    if word.endswith("z"):
        return f"{word[:-1]}ces"
    return f"{unstress(word)}es"


def unstress(word: str) -> str:
    """Drop the accent of a last syllable, which a suffix makes needless."""
    for accented, plain in zip("áéíóú", "aeiou", strict=True):
        word = re.sub(f"{accented}(?=[ns]$)", plain, word)
    return word


def agreeing_forms(masculine: str) -> tuple[str, ...]:
    """Make masculine, feminine and both plurals of an adjective or job."""
    feminine = masculine
    if masculine.endswith("o"):
        feminine = f"{masculine[:-1]}a"
    elif re.search(r"(or|és|án|ol)$", masculine):
        feminine = f"{unstress(masculine)}a"
    return (
        masculine,
        feminine,
        spanish_plural(masculine),
        spanish_plural(feminine),
    )


def english_verb(row: str, auxiliary: bool = False) -> Forms:
    """Conjugate an English verb.

    Args:
        row: The base and, unless regular, past, participle and gerund; an
            underscore joins a particle, as in "look_for".
        auxiliary: Bool, whether it is negated without "do".

    Returns:
        Forms by name, with a tuple for those that have persons: "present",
        "past", their negations "not" and "not_past", "base", "participle",
        "gerund", and "do" for questions.
    """
    first, *irregular = row.split()
    base, _, rest = first.partition("_")
    regular = re.sub(r"([^aeiou])y$", r"\1i", base)
    past = f"{regular}d" if base.endswith("e") else f"{regular}ed"
    gerund = f"{re.sub(r'(?<=[^e])e$', '', base)}ing"
    past = irregular[0] if irregular else past
    participle = irregular[1] if len(irregular) > 1 else past
    gerund = irregular[2] if len(irregular) > 2 else gerund
    third = "has" if base == "have" else english_s(base, after_o="es")
    forms = {
        "present": _third(base, third),
        "past": _third(past, past),
        "base": base,
        "participle": participle,
        "gerund": gerund,
        "do": _third("do", "does"),
        "not": _third(f"do not {base}", f"does not {base}"),
        "not_past": f"did not {base}",
    }
    if base == "be":
        forms["present"] = ("am", "are", "is", "are", "are")
        forms["past"] = ("was", "were", "was", "were", "were")
    if auxiliary:
        forms["not"] = tuple(f"{form} not" for form in forms["present"])
    tail = f" {rest.replace('_', ' ')}" if rest else ""
    return {
        name: form + tail
        if isinstance(form, str)
        else tuple(one + tail if name != "do" else one for one in form)
        for name, form in forms.items()
    }


def _third(form: str, third: str) -> tuple[str, ...]:
    """An English form by person."""
    return (form, form, third, form, form)


def spanish_verb(
    infinitive: str, change: str = "", irregular: str = ""
) -> Forms:
    """Conjugate a Spanish verb.

    Args:
        infinitive: The infinitive.
        change: What the last vowel of the stem becomes under stress and, after
            a hyphen, before the endings "ió" and "iendo": "ie-i".
        irregular: Irregular forms, such as `yo=doy past=di,diste,...`; a past
            of one part is a stem as in "traje".

    Returns:
        Forms by name, with a tuple for those that have persons: "present",
        "past", their negations "not" and "not_past", "base", "participle",
        "gerund", and the commands "imperative" and "forbid".
    """
    given = dict(part.split("=") for part in irregular.split())
    forms = {
        name: tuple(form.split(",")) if "," in form else form
        for name, form in given.items()
    }
    stem, ending = infinitive[:-2], infinitive[-2:]
    stressed, _, weak = change.partition("-")
    strong_stem, weak_stem = _change(stem, stressed), _change(stem, weak)
    yo = forms.pop("yo", f"{strong_stem}o")
    past = forms.get("past")
    if isinstance(past, str):
        they = "eron" if past.endswith("j") else "ieron"
        endings = ("e", "iste", "o", "imos", they)
        forms["past"] = tuple(past + end for end in endings)
    present = (yo, *_regular_present(stem, strong_stem, ending))
    regular = {
        "base": infinitive,
        "present": present,
        "past": _regular_past(stem, weak_stem, ending),
        **_non_finite(stem, weak_stem, ending),
    }
    forms = regular | forms
    subjunctive = f"{yo[:-1]}as"
    if ending == "ar":
        subjunctive = f"{_spell_before_e(yo[:-1])}es"
    return forms | {
        "imperative": forms["present"][HE],
        "forbid": subjunctive,
        "not": tuple(f"no {form}" for form in forms["present"]),
        "not_past": tuple(f"no {form}" for form in forms["past"]),
    }


def _change(stem: str, vowels: str) -> str:
    """Change the last vowel that "ie", "i", "ue" or "u" can stand for."""
    if not vowels:
        return stem
    old = "[ou]" if vowels[0] == "u" else "e"
    return re.sub(f"{old}(?=[^aeiou]*$)", vowels, stem)


def _spell_before_e(stem: str) -> str:
    """Keep the sound of the last consonant of a stem before an e."""
    for last, spelled in (("c", "qu"), ("g", "gu"), ("z", "c")):
        if stem.endswith(last):
            return stem[:-1] + spelled
    return stem


def _regular_present(stem: str, strong: str, ending: str) -> tuple[str, ...]:
    """The present after "yo"."""
    if ending == "ar":
        return f"{strong}as", f"{strong}a", f"{stem}amos", f"{strong}an"
    we = f"{stem}{ending[0]}mos"
    we = we if ending == "er" else f"{stem}imos"
    return f"{strong}es", f"{strong}e", we, f"{strong}en"


def _regular_past(stem: str, weak: str, ending: str) -> tuple[str, ...]:
    if ending == "ar":
        yo = f"{_spell_before_e(stem)}é"
        return yo, *(stem + end for end in ("aste", "ó", "amos", "aron"))
    if stem.endswith(("a", "e", "o")):
        return tuple(stem + end for end in ("í", "íste", "yó", "ímos", "yeron"))
    return f"{stem}í", f"{stem}iste", f"{weak}ió", f"{stem}imos", f"{weak}ieron"


def _non_finite(stem: str, weak: str, ending: str) -> dict[str, str]:
    if ending == "ar":
        return {"participle": f"{stem}ado", "gerund": f"{stem}ando"}
    if stem.endswith(("a", "e", "o")):
        return {"participle": f"{stem}ído", "gerund": f"{stem}yendo"}
    return {"participle": f"{stem}ido", "gerund": f"{weak}iendo"}


# Reading the tables.

# Slots of verbs, by the letter of their role.
VERB_SLOTS = {
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
VERB_OF_OBJECT = re.compile(r"\{(verb|deed|doing|event|gift|beber)\b")
# Slots of adjectives, by the trait that they must have.
ADJECTIVE_SLOTS = {
    "trait": "ser",
    "grade": "more",
    "mood": "estar",
    "condition": "estar",
    "trouble": "trouble",
}
# Verbs that animals can be the subject of.
ROAMING = ("sleep", "run", "walk", "rest")


@dataclass(frozen=True)
class NounSlot:
    """What a slot for a noun phrase admits; see `demo_words.NOUN_SLOTS`."""

    kinds: frozenset[str]
    singular: tuple[str, ...]
    plural: tuple[str, ...]
    adjective_chance: float


class Lexicon:
    """The tables of `train.demo_words` as words."""

    def __init__(self):
        self.nouns = tuple(_read_nouns())
        self.adjectives = tuple(_read_adjectives(demo_words.ADJECTIVES))
        self.verbs, self.named_verbs = _read_verbs(demo_words.VERBS)
        self.ordinals = [a for a in self.adjectives if "ordinal" in a.traits]
        self.verbs_by_role = {
            slot: [verb for verb in self.verbs if set(verb.roles) & set(roles)]
            for slot, roles in VERB_SLOTS.items()
        }
        self.verbs_by_role["roam"] = [
            verb for verb in self.verbs if verb.english in ROAMING
        ]
        self.names = [
            Phrase(name, name, feminine=feminine)
            for names, feminine in (
                (demo_words.WOMEN, True),
                (demo_words.MEN, False),
            )
            for name in names.split()
        ]
        self.phrases = {
            slot: [Invariable(*pair) for pair in _pairs(table, "=")]
            for slot, table in demo_words.PHRASES.items()
        }
        self.noun_slots = dict(_read_noun_slots())
        self.determiners = (
            _read_determiners(demo_words.SINGULAR),
            _read_determiners(demo_words.PLURAL),
        )
        self.owners = [
            Adjective(english, "", agreeing_forms(spanish))
            for english, spanish in _pairs(demo_words.OWNERS)
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

    def english_words(self) -> set[str]:
        """The English words that the tables list, in their basic form."""
        phrases = [p.english for row in self.phrases.values() for p in row]
        texts = [word.english for word in self.nouns + self.adjectives]
        texts += [verb.english for verb in self.verbs]
        texts += [name.english for name in self.names] + phrases
        texts += [
            determiner[0]
            for table in self.determiners
            for group in table.values()
            for determiner in group
        ]
        return {word for text in texts for word in text.split()}


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
    """The cells of each line of a table; an indented line goes on."""
    for line in table.replace("\n    ", " ").strip().split("\n"):
        yield [cell.strip() for cell in line.split("|")]


def _kinds(cell: str) -> frozenset[str]:
    """The kinds of noun in a cell, with those in the groups it names."""
    return frozenset(
        kind
        for name in cell.split()
        for kind in demo_words.GROUPS.get(name, name).split()
    )


def _read_nouns() -> Iterator[Noun]:
    for kind, table in demo_words.NOUNS.items():
        for english, spanish in _pairs(table):
            english, _, english_plural = english.partition("/")
            spanish, _, gender = spanish.partition(":")
            spanish, _, plural = spanish.partition("/")
            feminine = gender == "f" or (
                not gender and re.search("(a|ión|dad)$", spanish) is not None
            )
            yield Noun(
                english,
                english_plural or english_s(english),
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
    for slot, kinds, singular, plural, chance in _rows(demo_words.NOUN_SLOTS):
        groups = [
            tuple(name for name in cell.split() if name != "-")
            for cell in (singular, plural)
        ]
        yield slot, NounSlot(_kinds(kinds), *groups, float(chance))


def _read_determiners(
    table: dict[str, str],
) -> dict[str, list[tuple[str, ...]]]:
    """Determiners by group; `_` stands for a space or for none at all."""
    return {
        group: [
            tuple(word.replace("_", " ").strip() for word in entry.split())
            for entry in entries.split(",")
        ]
        for group, entries in table.items()
    }
