"""Tests of `train.data.demo.generator`."""

import random
import re
from collections import Counter
from functools import cache

import pytest

from train.data.demo.generator import SIZES
from train.data.demo.generator import demo_corpus
from train.data.demo.generator import draw_sentence
from train.data.demo.generator import held_out_combinations
from train.data.demo.generator import patterns
from train.data.demo.grammar import PRONOUNS
from train.data.demo.grammar import Invariable
from train.data.demo.grammar import Profession
from train.data.demo.grammar import noun_phrase
from train.data.demo.lexicon import lexicon

DETERMINERS = ("the", "a", "an", "my", "your", "his", "her", "our", "their")
DETERMINERS += ("this", "that", "these", "those", "two", "three", "many")
corpus = cache(demo_corpus)


def tokens(text):
    return re.findall(r"\w+|[^\w\s]", text)


def forms(word):
    """All English forms of a noun, an adjective or a verb of the lexicon."""
    words = lexicon()
    found = {word}
    for noun in words.nouns:
        if noun.english == word:
            found.add(noun.english_plural)
    for adjective in words.adjectives:
        if adjective.english == word:
            comparative = adjective.comparative
            found |= {comparative, re.sub("er$", "est", comparative)}
    for verb in words.verbs:
        if verb.forms["english"]["base"] == word:
            for name, form in verb.forms["english"].items():
                if name != "do":
                    found |= {form} if isinstance(form, str) else set(form)
    return found


def phrase(text, slot=""):
    """Read a noun phrase such as "two black cats" with the lexicon."""
    words = lexicon()
    *before, last = text.split()
    noun, plural = next(
        (noun, last != noun.english)
        for noun in words.nouns
        if last in (noun.english, noun.english_plural)
    )
    groups = words.determiners[plural]
    rows = [row for group in groups.values() for row in group]
    if slot in ("liked", "part"):
        determiner = groups["generic"][0]
    else:
        name = before.pop(0) if before else ""
        name = "a" if name == "an" else name
        name = f"{name} {before.pop(0)}" if name == "all" else name
        determiner = next(row for row in rows if row[0] == name)
    adjective = word_named(before[0]) if before else None
    return noun_phrase(determiner, noun, plural, adjective)


def word_named(text):
    words = lexicon()
    return next(a for a in words.adjectives if a.english == text)


def resolve(slot, text):
    """Find the word that the text, or a pair of texts, means in a slot."""
    if isinstance(text, tuple):
        return Invariable(*text)
    words, name = lexicon(), slot.rstrip("12")
    if name == "profession":
        return Profession(phrase(text).noun)
    if name in words.phrases:
        return next(p for p in words.phrases[name] if p.english == text)
    if name in words.verbs_by_role:
        verbs = words.verbs_by_role[name]
        return next(v for v in verbs if v.forms["english"]["base"] == text)
    if name in ("ago", "recently"):
        return next(p for p in words.phrases["recently"] if p.english == text)
    for choices in (words.adjectives, words.names, PRONOUNS, words.owners):
        for word in choices:
            if word.english == text:
                return word
    return phrase(text, name)


def say(template, **texts):
    """Fill the only pattern with an English template."""
    (pattern,) = [pair for pair in patterns() if pair[0] == template]
    words = {slot: resolve(slot, text) for slot, text in texts.items()}
    sentence = draw_sentence(pattern, random.Random(0), words)
    return sentence.english, sentence.spanish


def test_has_the_promised_sizes():
    sizes = {split: len(pairs) for split, pairs in corpus().items()}
    assert sizes == SIZES
    assert tuple(sizes.values()) == (20_000, 500, 500, 500)
    assert tuple(sizes) == ("train", "validation", "test", "unseen")


def test_depends_on_nothing_but_the_seed():
    assert demo_corpus(seed=0) == corpus()
    assert held_out_combinations(0) == held_out_combinations(0)


def test_differs_between_seeds():
    assert corpus()["test"] != corpus(1)["test"]
    assert held_out_combinations(0) != held_out_combinations(1)


def test_repeats_no_english_sentence_within_or_across_splits():
    english = [pair[0] for pairs in corpus().values() for pair in pairs]
    assert len(english) == len(set(english)) == sum(SIZES.values())


def test_has_at_least_sixty_patterns_and_three_hundred_words():
    words = lexicon()
    lemmas = {noun.english for noun in words.nouns}
    lemmas |= {adjective.english for adjective in words.adjectives}
    lemmas |= {verb.english for verb in words.verbs}
    assert len(set(patterns())) == len(patterns()) >= 60
    assert len(lemmas) >= 300
    assert len(words.english_words()) >= 400


def test_patterns_are_rich_enough_to_occur_equally_often():
    share = SIZES["train"] // len(patterns())
    rng = random.Random(0)
    for pattern in patterns():
        drawn = set()
        for _ in range(10 * share):
            drawn.add(draw_sentence(pattern, rng).english)
            if len(drawn) > share:
                break
        assert len(drawn) > share, pattern


@pytest.mark.parametrize("seed", [0, 1])
def test_english_decides_spanish(seed):
    rng = random.Random(seed)
    translations = {}
    for _ in range(150):
        for pattern in patterns():
            sentence = draw_sentence(pattern, rng)
            spanish = translations.setdefault(
                sentence.english, sentence.spanish
            )
            assert spanish == sentence.spanish, sentence.english


@pytest.mark.parametrize("seed", [0, 1])
def test_every_unseen_sentence_has_a_held_out_combination(seed):
    pairs = [
        (forms(word), forms(noun))
        for word, noun in sorted(held_out_combinations(seed))
    ]
    for english, _ in corpus(seed)["unseen"]:
        text = f" {' '.join(tokens(english.lower()))} "
        assert any(
            any(f" {form} " in text for form in noun_forms)
            and any(f" {form.lower()} " in text for form in word_forms)
            for word_forms, noun_forms in pairs
        ), english


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_no_other_sentence_has_a_held_out_combination(split, seed):
    windows = set()
    for english, _ in corpus(seed)[split]:
        words = tokens(english.lower())
        for size in (2, 3, 4):
            for start in range(len(words) - size + 1):
                windows.add(tuple(words[start : start + size]))
    adjectives = {adjective.english for adjective in lexicon().adjectives}
    verbs = {verb.english for verb in lexicon().verbs}

    for word, noun in held_out_combinations(seed):
        for noun_form in forms(noun):
            if word in adjectives:
                assert (word.lower(), noun_form) not in windows
                assert ("the", noun_form, "is", word.lower()) not in windows
            if word in verbs:
                for form in forms(word):
                    for determiner in DETERMINERS:
                        found = (*form.split(), determiner, noun_form)
                        assert found not in windows


@pytest.mark.parametrize("seed", [0, 1])
def test_every_held_out_word_occurs_in_many_other_combinations(seed):
    held_out = held_out_combinations(seed)
    assert len(held_out) > 200
    train = Counter(
        token
        for english, _ in corpus(seed)["train"]
        for token in tokens(english.lower())
    )
    for pair in held_out:
        for word in pair:
            found = {form.split()[0].lower() for form in forms(word)}
            assert sum(train[form] for form in found) >= 10, word


@pytest.mark.parametrize("seed", [0, 1])
def test_every_token_of_the_other_splits_occurs_in_train(seed):
    splits = corpus(seed)
    for side in (0, 1):
        known = {
            token for pair in splits["train"] for token in tokens(pair[side])
        }
        for split in ("validation", "test", "unseen"):
            for pair in splits[split]:
                assert known.issuperset(tokens(pair[side])), pair


@pytest.mark.parametrize("seed", [0, 1])
def test_every_word_of_the_lexicon_occurs_ten_times_in_train(seed):
    train = Counter(
        token
        for english, _ in corpus(seed)["train"]
        for token in tokens(english.lower())
    )
    words = lexicon()
    unused = {"can", "must", "finish"}  # These serve the Spanish side only.
    for word in (*words.nouns, *words.adjectives, *words.verbs):
        found = {form.split()[0].lower() for form in forms(word.english)}
        count = sum(train[form] for form in found)
        assert count >= 10 or word.english in unused, (word.english, count)


@pytest.mark.parametrize("seed", [0, 1])
def test_sentences_are_well_formed_text(seed):
    for pairs in corpus(seed).values():
        for english, spanish in pairs:
            for text in (english, spanish):
                assert text == " ".join(text.split())
                assert not re.search(r"[{}_|=]|\s[.,?!]|[¿¡]\s", text), text
                assert text[-1] in ".?!"
            assert english[0].isupper()
            assert spanish.lstrip("¿¡")[0].isupper()
            assert spanish.count("¿") == spanish.count("?")
            assert spanish.count("¡") == spanish.count("!")
            assert english.count("?") == spanish.count("?")
            assert english.count("!") == spanish.count("!")


@pytest.mark.parametrize("seed", [0, 1])
def test_contractions_and_articles_are_made_everywhere(seed):
    for pairs in corpus(seed).values():
        for english, spanish in pairs:
            assert not re.search(r"\b([aA]|[dD]e) el\b", spanish), spanish
            assert not re.search(r"\b[lL]a agua\b", spanish), spanish
            assert not re.search(r"\by h?i", spanish), spanish
            assert not re.search(r"\b[aA] [aeiouAEIOU]", english), english
            assert not re.search(r"\b[aA]n [^aeiouhAEIOU]", english), english


# (English template, words for its slots, English, Spanish), written by hand.
FACTS = {
    "an adjective follows its noun and agrees in number": (
        "{subject} {tener} {possession}.",
        {"subject": "I", "possession": "two black cats"},
        "I have two black cats.",
        "Tengo dos gatos negros.",
    ),
    "the third person takes an s, does and no": (
        "{subject} {verb:not} {object}.",
        {"subject": "Ana", "verb": "eat", "object": "cheese"},
        "Ana does not eat cheese.",
        "Ana no come queso.",
    ),
    "an e that is stressed becomes ie": (
        "{subject} {deed} {object} {habit}.",
        {
            "subject": "they",
            "deed": "close",
            "object": "the door",
            "habit": "every night",
        },
        "They close the door every night.",
        "Ellos cierran la puerta todas las noches.",
    ),
    "the past of a verb in -car keeps its sound": (
        "{subject} {event:past} {object} {ago}.",
        {
            "subject": "I",
            "event": "look for",
            "object": "the key",
            "ago": "yesterday",
        },
        "I looked for the key yesterday.",
        "Busqué la llave ayer.",
    ),
    "the past of leer has a y": (
        "{ago}, {subject} {event:past} {object}.",
        {
            "subject": "she",
            "event": "read",
            "object": "an interesting book",
            "ago": "last night",
        },
        "Last night, she read an interesting book.",
        "Anoche ella leyó un libro interesante.",
    ),
    "the past of traducir has a j": (
        "{subject} {event:past} {entire} {ago}.",
        {
            "subject": "Ana",
            "event": "translate",
            "entire": "all the letters",
            "ago": "last week",
        },
        "Ana translated all the letters last week.",
        "Ana tradujo todas las cartas la semana pasada.",
    ),
    "participles can be irregular in both languages": (
        "{subject} {haber} already {deed:participle} {object}.",
        {"subject": "we", "deed": "write", "object": "this poem"},
        "We have already written this poem.",
        "Ya hemos escrito este poema.",
    ),
    "the perfect is negated without do": (
        "{subject} {haber:not} {deed:participle} {object} yet.",
        {"subject": "he", "deed": "open", "object": "the window"},
        "He has not opened the window yet.",
        "Él todavía no ha abierto la ventana.",
    ),
    "the near future is made with ir a": (
        "{subject} {estar} going to {deed:base} {object} {soon}.",
        {
            "subject": "you",
            "deed": "buy",
            "object": "bread",
            "soon": "tomorrow",
        },
        "You are going to buy bread tomorrow.",
        "Vas a comprar pan mañana.",
    ),
    "the progressive has irregular gerunds": (
        "{subject} {estar} {doing:gerund} {object} {now}.",
        {"subject": "Luis", "doing": "read", "object": "a novel", "now": "now"},
        "Luis is reading a novel now.",
        "Luis está leyendo una novela ahora.",
    ),
    "an obligation is made with tener que": (
        "{subject} {tener} to {deed:base} {object} {soon}.",
        {
            "subject": "she",
            "deed": "clean",
            "object": "the kitchen",
            "soon": "today",
        },
        "She has to clean the kitchen today.",
        "Ella tiene que limpiar la cocina hoy.",
    ),
    "primero loses its o before a noun": (
        "{subject} {deed:past} {ordered} {ago}.",
        {
            "subject": "he",
            "deed": "buy",
            "ordered": "the first car",
            "ago": "last year",
        },
        "He bought the first car last year.",
        "Él compró el primer coche el año pasado.",
    ),
    "a question word comes before the verb and its subject": (
        "what did {asked} {event:base} {ago}?",
        {"asked": "my sisters", "event": "find", "ago": "yesterday"},
        "What did my sisters find yesterday?",
        "¿Qué encontraron mis hermanas ayer?",
    ),
    "bueno goes before its noun and is short": (
        "there {estar@some} {some} in {place}.",
        {"some": "a good teacher", "place": "the school"},
        "There is a good teacher in the school.",
        "Hay un buen profesor en la escuela.",
    ),
    "hay is both singular and plural": (
        "there {estar@some} {some} in {place}.",
        {"some": "some apples", "place": "the kitchen"},
        "There are some apples in the kitchen.",
        "Hay unas manzanas en la cocina.",
    ),
    "questions ask with do and two marks": (
        "{verb:do@asked} {asked} {verb:base} {object}?",
        {"asked": "you", "verb": "want", "object": "the umbrella"},
        "Do you want the umbrella?",
        "¿Quieres el paraguas?",
    ),
    "an order not to is subjunctive": (
        "do not {deed:base} {object} {soon}!",
        {"deed": "close", "object": "the windows", "soon": "tonight"},
        "Do not close the windows tonight!",
        "¡No cierres las ventanas esta noche!",
    ),
    "a person who is seen takes a, which contracts": (
        "{subject} {contact:past} {human} {ago}.",
        {
            "subject": "we",
            "contact": "see",
            "human": "the doctor",
            "ago": "this morning",
        },
        "We saw the doctor this morning.",
        "Vimos al médico esta mañana.",
    ),
    "an object pronoun goes before the verb": (
        "{subject} {contact:not_past} {whom:lo} {ago}.",
        {
            "subject": "Pedro",
            "contact": "hug",
            "whom": "she",
            "ago": "yesterday",
        },
        "Pedro did not hug her yesterday.",
        "Pedro no la abrazó ayer.",
    ),
    "a pronoun has the gender of what it stands for": (
        "where {estar@target} {target}? {subject} {deed:not} {target:lo}.",
        {"subject": "I", "deed": "wear", "target": "the shirts"},
        "Where are the shirts? I do not wear them.",
        "¿Dónde están las camisas? No las llevo.",
    ),
    "who gets a gift is named twice": (
        "{subject} {gift} {object} to {human} {habit}.",
        {
            "subject": "I",
            "gift": "give",
            "object": "a flower",
            "human": "my parents",
            "habit": "on Sundays",
        },
        "I give a flower to my parents on Sundays.",
        "Les doy una flor a mis padres los domingos.",
    ),
    "what hurts is the subject": (
        "{sufferer:of} {part} {doler@part} {now}.",
        {"sufferer": "I", "part": "feet", "now": "today"},
        "My feet hurt today.",
        "Me duelen los pies hoy.",
    ),
    "what one likes is the subject": (
        "{subject} {gustar} {liked}.",
        {"subject": "my brother", "liked": "black cats"},
        "My brother likes black cats.",
        "A mi hermano le gustan los gatos negros.",
    ),
    "water is feminine with a masculine article": (
        "{subject} {gustar:not} {liked}.",
        {"subject": "we", "liked": "cold water"},
        "We do not like cold water.",
        "No nos gusta el agua fría.",
    ),
    "de and el contract": (
        "{item} {estar@item} {near} {landmark}.",
        {"item": "the keys", "near": "under", "landmark": "the mirror"},
        "The keys are under the mirror.",
        "Las llaves están debajo del espejo.",
    ),
    "character takes ser": (
        "{subject} {ser} {trait}.",
        {"subject": "María", "trait": "intelligent"},
        "María is intelligent.",
        "María es inteligente.",
    ),
    "a state takes estar": (
        "{subject} {estar} {mood} {now}.",
        {"subject": "my sisters", "mood": "tired", "now": "now"},
        "My sisters are tired now.",
        "Mis hermanas están cansadas ahora.",
    ),
    "hunger is had": (
        "{subject} {ser} very {feeling} {now}.",
        {"subject": "I", "feeling": "hungry", "now": "now"},
        "I am very hungry now.",
        "Tengo mucha hambre ahora.",
    ),
    "ages are had": (
        "{name} {ser@name} {dozens} years old and "
        "{name2} {ser@name2} {dozens2}.",
        {
            "name": "Ana",
            "dozens": "twenty",
            "name2": "Luis",
            "dozens2": "thirty",
        },
        "Ana is twenty years old and Luis is thirty.",
        "Ana tiene veinte años y Luis tiene treinta.",
    ),
    "a profession agrees and has no article": (
        "{kin} {querer@kin} to be {profession@kin} in {city}.",
        {"kin": "Elena", "profession": "engineer", "city": "London"},
        "Elena wants to be an engineer in London.",
        "Elena quiere ser ingeniera en Londres.",
    ),
    "what is possessed rules mine": (
        "{thing} {ser@thing} {owner@thing}.",
        {"thing": "those houses", "owner": "mine"},
        "Those houses are mine.",
        "Esas casas son mías.",
    ),
    "a comparison uses más": (
        "{thing} {ser@thing} {grade:more@thing} than {peer}.",
        {"thing": "the house", "grade": "big", "peer": "the school"},
        "The house is bigger than the school.",
        "La casa es más grande que la escuela.",
    ),
    "a superlative follows its noun": (
        "{bare:this} {ser@bare} the {grade:most@bare} {bare} in {zone}.",
        {"bare": "car", "grade": "expensive", "zone": "the city"},
        "This is the most expensive car in the city.",
        "Este es el coche más caro de la ciudad.",
    ),
    "an exclamation has an article in English only": (
        "what {grade:article@bare} {bare}!",
        {"bare": "flower", "grade": "ugly"},
        "What an ugly flower!",
        "¡Qué flor tan fea!",
    ),
    "a genitive becomes de": (
        "{holder:of} {bare} {ser@bare} {trait@bare}.",
        {"holder": "the teacher", "bare": "pencils", "trait": "red"},
        "The teacher's pencils are red.",
        "Los lápices del profesor son rojos.",
    ),
    "one goes al park": (
        "{subject} {ir} to {goal} {habit}.",
        {"subject": "he", "goal": "the park", "habit": "on Mondays"},
        "He goes to the park on Mondays.",
        "Él va al parque los lunes.",
    ),
    "routines are reflexive": (
        "{subject} {routine} {hour} {habit}.",
        {
            "subject": "you",
            "routine": "wake up",
            "hour": ("at seven o'clock", "a las siete"),
            "habit": "every day",
        },
        "You wake up at seven o'clock every day.",
        "Te despiertas a las siete todos los días.",
    ),
    "the weather is made": (
        "it is very {sky} in {city} in {month}.",
        {"sky": "cold", "city": "Berlin", "month": "January"},
        "It is very cold in Berlin in January.",
        "En enero hace mucho frío en Berlín.",
    ),
    "the subject is not repeated in Spanish": (
        "if {subject} {tener} time, {subject:again} {ir} to {goal} {habit}.",
        {"subject": "my wife", "goal": "the beach", "habit": "in summer"},
        "If my wife has time, she goes to the beach in summer.",
        "Si mi esposa tiene tiempo, va a la playa en verano.",
    ),
    "a relative clause has que for people and things": (
        "{person} who {act@person} in {place} "
        "{ser@person} very {grade@person}.",
        {
            "person": "the women",
            "act": "sleep",
            "place": "the park",
            "grade": "young",
        },
        "The women who sleep in the park are very young.",
        "Las mujeres que duermen en el parque son muy jóvenes.",
    ),
    "before takes the infinitive in Spanish": (
        "before {deed:gerund} {object}, {subject} {ir:past} to {goal}.",
        {
            "deed": "buy",
            "object": "a French hat",
            "subject": "they",
            "goal": "the lake",
        },
        "Before buying a French hat, they went to the lake.",
        "Antes de comprar un sombrero francés, ellos fueron al lago.",
    ),
}


@pytest.mark.parametrize("fact", FACTS)
def test_knows_that(fact):
    template, texts, english, spanish = FACTS[fact]
    assert say(template, **texts) == (english, spanish)
