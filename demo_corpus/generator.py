"""Generates the sentence pairs of the demo corpus from a bilingual grammar.

A fresh machine may have no network, so the demo trains on English-Spanish
sentences that this module generates from `word_tables.py`. A sentence is a
pattern with slots, such as `{subject} {verb} {object}.`; each slot is
drawn once and written in both languages, which differ in agreement,
conjugation and word order. The English decides the Spanish: "you" is always
"tú", and persons of unknown gender ("I", "they", "the teacher") are masculine.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from demo_corpus import word_tables
from demo_corpus.inflection import ME, THEY, WE, YOU, Pair
from demo_corpus.lexicon import ADJECTIVE_SLOTS, VERB_SLOT_PATTERN, NounSlot, lexicon
from demo_corpus.parts_of_speech import (
    FAMILY_KINDS,
    IT,
    PRONOUNS,
    UNNAMED_PERSON,
    Adjective,
    Invariable,
    Noun,
    Phrase,
    Profession,
    Word,
    join,
    noun_phrase,
)

SIZES = {"train": 20_000, "validation": 500, "test": 500, "unseen": 500}
# The share of the combinations of any one word that training never sees.
HELD_OUT_SHARE = 0.1
# A pattern without a new sentence in so many draws is taken to be exhausted.
MAX_DRAWS = 100


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
    rest = [sentence for sentence in rest if known.issuperset(_tokens(sentence))]
    unseen = _generate(
        rng,
        SIZES["unseen"],
        accept=lambda sentence: (
            sentence.combinations & held_out and known.issuperset(_tokens(sentence))
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
    table = word_tables.PATTERNS.strip().replace("\n= ", "=").split("\n")
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


def draw_sentence(pattern: Pair, rng: random.Random) -> Sentence:
    """Fill the slots of a pattern.

    Args:
        pattern: One of `patterns()`, or another pair of templates.
        rng: Source of the choices.

    Returns:
        A `Sentence` with its words in both languages.
    """
    scene = SentenceWords(pattern, rng)
    return Sentence(*scene.write_pair(), frozenset(scene.combinations))


def capitalize(text: str) -> str:
    """Raise the first letter of each sentence in a text."""
    return CAPITAL.sub(lambda match: match[0].upper(), text)


class SentenceWords:
    """The words that were drawn for the slots of one sentence.

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

    def write_pair(self) -> Pair:
        """Write the sentence in both languages."""
        english, spanish = self.fill("english"), self.fill("spanish")
        for rule, replacement in SPANISH_RULES:
            spanish = rule.sub(replacement, spanish)
        return capitalize(english), capitalize(spanish)

    def fill(self, language: str) -> str:
        """Write the template of a language."""
        return "".join(text for _, text in self.fill_parts(language))

    def fill_parts(self, language: str) -> Iterator[Pair]:
        """Yield the parts of a filled template, each after its slot or ""."""
        for literal, slot, form, target in slots(self.templates[language]):
            yield "", literal
            if slot:
                word = self.get(slot, target or "subject")
                subject = self.drawn.get("subject", IT)
                agreeing = self.get(target) if target else subject
                yield slot, word.write(language, form, agreeing)

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

    def _draw_noun_phrase(self, slot: NounSlot, name: str) -> Phrase:
        noun = self._draw_noun(slot)
        plural = self._choose_number(slot, noun)
        adjective = None
        if name == "ordered":
            adjective = self.rng.choice(lexicon().ordinals)
        elif self.rng.random() < slot.adjective_chance:
            adjective = self._choose_adjective(noun, "attribute")
        determiner = self._choose_determiner(slot, noun, plural)
        return noun_phrase(determiner, noun, plural, adjective)

    def _draw_noun(self, slot: NounSlot) -> Noun:
        """Draw a noun that suits the slot and, if it is an object, the verb."""
        if slot.kinds != {"="}:
            return self._choose_noun(slot.kinds)
        verb = self.get(VERB_SLOT_PATTERN.search(self.templates["english"])[1])
        noun = self._choose_noun(verb.kinds)
        self.combinations.add((verb.english, noun.english))
        return noun

    def _choose_number(self, slot: NounSlot, noun: Noun) -> bool:
        """Choose whether a phrase is plural, as far as it can be."""
        if noun.kind in word_tables.UNCOUNTABLE_KINDS or not slot.plural:
            return False
        return not slot.singular or self.rng.random() < 0.4

    def _choose_determiner(
        self, slot: NounSlot, noun: Noun, plural: bool
    ) -> tuple[str, ...]:
        groups = slot.plural if plural else slot.singular
        if noun.kind in word_tables.UNCOUNTABLE_KINDS:
            groups = [g for g in slot.singular if g != "a"] or slot.plural
        table = lexicon().determiners[plural]
        return self.rng.choice(table[self.rng.choice(groups)])

    def _choose_new(self, phrases: list["Word"]) -> "Word":
        """Choose a phrase that is not in the scene yet."""
        while (phrase := self.rng.choice(phrases)) in self.drawn.values():
            pass
        return phrase

    def _choose_noun(self, kinds: frozenset[str]) -> Noun:
        return self.rng.choice(lexicon().nouns_of_kinds(kinds))

    def _choose_adjective(self, noun: Noun, trait: str) -> Adjective:
        """Choose an adjective that suits a noun and has a trait."""
        adjectives = lexicon().adjectives_for(noun.kind, trait)
        adjective = self.rng.choice(adjectives)
        if noun.english:
            self.combinations.add((adjective.english, noun.english))
        return adjective

    def _draw_predicate(self, trait: str, target: str) -> Adjective:
        noun = self.get(target).noun or UNNAMED_PERSON
        return self._choose_adjective(noun, trait)

    def _draw_subject(self) -> Phrase:
        if self.rng.random() < 0.5:
            return self.rng.choice(PRONOUNS)
        if self.rng.random() < 0.1:
            name = self.rng.choice(lexicon().names)
            return Phrase(f"{name.english} and I", f"{name.spanish} y yo", person=WE)
        return self._draw_human()

    def _draw_asked(self) -> Phrase:
        if self.rng.random() < 0.4:
            return self.rng.choice([p for p in PRONOUNS if p.person not in (ME, WE)])
        return self._draw_human()

    def _draw_human(self, singular: bool = False) -> Phrase:
        """A name, a couple of names, a relative or someone with a job."""
        chance = self.rng.random()
        if chance < 0.4:
            return self._draw_named(couple=chance < 0.05 and not singular)
        if chance < 0.75:
            return self._draw_relative(singular)
        return self._draw("someone" if singular else "person", "")

    def _draw_named(self, couple: bool) -> Phrase:
        """One or two names that are not in the scene yet."""
        drawn = " ".join(
            word.english for word in self.drawn.values() if isinstance(word, Phrase)
        )
        names = [name for name in lexicon().names if name.english not in drawn]
        if couple:
            return join(*self.rng.sample(names, 2))
        return self.rng.choice(names)

    _draw_company = _draw_human

    def _draw_name(self) -> Phrase:
        return self._draw_named(couple=False)

    def _draw_kin(self) -> Phrase:
        """Someone whose job is not named yet."""
        chance = self.rng.random()
        if chance < 0.3:
            return self.rng.choice(PRONOUNS)
        if chance < 0.6:
            return self.rng.choice(lexicon().names)
        return self._draw_relative()

    def _draw_relative(self, singular: bool = False) -> Phrase:
        kinds = FAMILY_KINDS - {"couple"} if singular else FAMILY_KINDS
        noun = self._choose_noun(kinds)
        can_be_plural = noun.kind == "relative" and not singular
        plural = noun.kind == "couple" or (can_be_plural and self.rng.random() < 0.25)
        group = "partner" if noun.kind == "spouse" else "possessive"
        determiner = self.rng.choice(lexicon().determiners[plural][group])
        return noun_phrase(determiner, noun, plural)

    def _draw_holder(self) -> Phrase:
        """Someone who can own: a human in the singular."""
        return self._draw_human(singular=True)

    def _draw_sufferer(self) -> Phrase:
        """Someone whose body hurts: a pronoun or a human in the singular."""
        if self.rng.random() < 0.4:
            return self.rng.choice([p for p in PRONOUNS if p.person < WE])
        return self._draw_holder()

    def _draw_whom(self) -> Phrase:
        """A personal pronoun other than the subject."""
        subject = self.get("subject")
        group = next((g for g in ((ME, WE), (YOU,)) if subject.person in g), ())
        return self.rng.choice([p for p in PRONOUNS if p.person not in group])

    def _draw_profession(self) -> "Profession":
        return Profession(self._choose_noun(frozenset({"job"})))

    def _draw_owner(self) -> Adjective:
        return self.rng.choice(lexicon().owners)

    def _draw_it(self) -> Phrase:
        return IT

    def _draw_peer(self) -> Phrase:
        """Another thing of the kind and number of the slot `thing`."""
        thing = self.get("thing")
        plural = thing.person == THEY
        nouns = lexicon().nouns_of_kinds(frozenset({thing.noun.kind}))
        noun = self.rng.choice([n for n in nouns if n != thing.noun])
        return noun_phrase(lexicon().determiners[plural]["the"][0], noun, plural)

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
            return Invariable(f"at {number.english} o'clock", f"a las {number.spanish}")
        return Invariable(
            f"at half past {number.english}", f"a las {number.spanish} y media"
        )
