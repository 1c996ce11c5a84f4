"""Generates the sentence pairs of the demo corpus from a bilingual grammar.

A fresh machine may have no network, so the demo trains on English-Spanish
sentences that this module generates from `words.toml`. A sentence is a
pattern with slots, such as `{subject} {verb} {object}.`; each slot is
drawn once and written in both languages, which differ in agreement,
conjugation and word order. The English decides the Spanish: "you" is always
"tú", and persons of unknown gender ("I", "they", "the teacher") are masculine.
"""

import random
import re
from collections import Counter
from collections.abc import Callable

from demo_corpus import lexicon
from demo_corpus.sentence import Pair, Sentence, patterns

SEED = 0
SIZES = {"train": 20_000, "validation": 500, "test": 500, "unseen": 500}
# The share of the combinations of any one word that training never sees.
HELD_OUT_SHARE = 0.1
# A pattern without a new sentence in so many draws is taken to be exhausted.
MAX_DRAWS = 100


def demo_corpus() -> dict[str, list[Pair]]:
    """Generate the splits of the demo data set.

    The patterns occur about equally often, no English sentence occurs twice,
    and every word of the other splits occurs in "train".

    Returns:
        Lists of `(english, spanish)` by split: "train" (20,000 pairs),
        "validation", "test" and "unseen" (500 each). Each sentence of
        "unseen" has one of `held_out_combinations()` and no other
        sentence has any: its words are known, but not together.
    """
    rng = random.Random(SEED)
    held_out = held_out_combinations()
    train, validation, test, unseen = SIZES.values()
    spare = train // 20  # In case of words that training lacks.
    seen = _generate(
        rng,
        train + validation + test + spare,
        accept=lambda sentence: not sentence.combinations & held_out,
    )
    known = {token for sentence in seen[:train] for token in _tokens(sentence)}
    rest = [s for s in seen[train:] if known.issuperset(_tokens(s))]
    others = _generate(
        rng,
        unseen,
        accept=lambda sentence: (
            sentence.combinations & held_out and known.issuperset(_tokens(sentence))
        ),
    )
    splits = (
        seen[:train],
        rest[:validation],
        rest[validation : validation + test],
        others,
    )
    return {
        split: [(sentence.english, sentence.spanish) for sentence in sentences]
        for split, sentences in zip(SIZES, splits, strict=True)
    }


def held_out_combinations() -> set[Pair]:
    """Choose the combinations of words that only "unseen" contains.

    They are pairs of English words, `(adjective, noun)` or `(verb, object)`. Most
    combinations of each word remain.
    """
    # "They have broken cups" shows "broken cups" without the adjective.
    participles = {verb.forms["english"]["participle"][0] for verb in lexicon.VERBS}
    combinations = [
        (word.english, noun.english)
        for word in lexicon.ADJECTIVES + lexicon.VERBS
        for noun in lexicon.NOUNS
        if noun.kind in word.kinds and word.english not in participles
    ]
    total = Counter(word for pair in combinations for word in pair)
    random.Random(SEED).shuffle(combinations)
    count, held_out = Counter(), set()
    for pair in combinations:
        if all(count[word] < HELD_OUT_SHARE * total[word] - 1 for word in pair):
            held_out.add(pair)
            count.update(pair)
    return held_out


def _generate(
    rng: random.Random, size: int, accept: Callable[[Sentence], bool]
) -> list[Sentence]:
    """Draw `size` accepted sentences, in turn from each pattern; shuffle."""
    sentences = {}
    active = list(patterns())
    while active and len(sentences) < size:
        for pattern in list(active):
            for _ in range(MAX_DRAWS):
                sentence = Sentence(pattern, rng)
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
