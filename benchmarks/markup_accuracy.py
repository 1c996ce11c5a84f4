"""Measures the share of tags that a model places around the right words.

On sentences of the embedded grammar, which says which words of both sides
belong together: those that fill a slot of its patterns, and their nouns; each
is put in a tag of its own document. Verbs are left out, since Spanish writes
parts of theirs elsewhere (`no`, `se`, `le`), and so are translations that are
not the grammar's.
"""

import argparse
import pathlib
import random
import re

from command_line.errors import UserError, exit_on_user_error
from demo_corpus.generator import held_out_combinations
from demo_corpus.parts_of_speech import Phrase
from demo_corpus.sentence import Sentence, patterns
from documents.markup.translate_markup import translate_markup
from translate.document_translation import make_sentence_translator
from translate.loading import load_export

# Words at the edges of a Spanish phrase that English lacks.
PARTICLES = {"a", "al", "de", "del"}
ARTICLES = {"el", "la", "los", "las"}


def draw_sentences(count: int, seed: int) -> list[tuple[str, str, list]]:
    """Returns sentences, their translations, and phrases of both."""
    rng, found = random.Random(seed), {}
    held_out = held_out_combinations()
    while len(found) < count:
        scene = Sentence(rng.choice(patterns()), rng)
        english, spanish = scene.english, scene.spanish
        drawn = [word for word in scene.drawn.values() if isinstance(word, Phrase)]
        pairs = [(word.english, word.spanish) for word in drawn]
        for noun in (word.noun for word in drawn):
            if noun and noun.english:
                pairs.append((noun.english, noun.spanish))
                pairs.append((noun.english_plural, noun.spanish_plural))
        # A noun that is a phrase of its own is that: `las vacas` for `cows`.
        phrases = {}
        for left, right in pairs:
            if find_once(left, english) and find_once(right, spanish):
                phrases.setdefault(left, right)
        if phrases and not scene.combinations & held_out:
            found[english] = english, spanish, sorted(phrases.items())
    return list(found.values())


def find_once(phrase: str, text: str) -> re.Match | None:
    """Returns the span of a phrase that occurs once in a text."""
    pattern = rf"(?i)(?<!\w){re.escape(phrase)}(?!\w)"
    found = list(re.finditer(pattern, text)) if phrase else []
    return found[0] if len(found) == 1 else None


def strip_determiner(phrase: str, english: str) -> list[str]:
    """Removes words from a Spanish phrase that the English one lacks."""
    words = phrase.lower().split()
    extra = PARTICLES
    if not english.lower().startswith("the "):
        extra = PARTICLES | ARTICLES
    while len(words) > 1 and words[0] in extra:
        del words[0]
    while len(words) > 1 and words[-1] in extra:
        del words[-1]
    return words


def measure(translator, count: int, seed: int) -> dict[str, float]:
    """Returns the number of tags, and the share that is placed correctly."""
    sentences = draw_sentences(count, seed)
    documents = [f"<p>{english}</p>" for english, _, _ in sentences]
    found = translate_markup("\n".join(documents), "html", translator).content
    asked = []
    for document, (english, spanish, phrases) in zip(
        found.split("\n"), sentences, strict=True
    ):
        if document != f"<p>{spanish}</p>":
            continue
        for left, right in phrases:
            start, end = find_once(left, english).span()
            tagged = f"{english[:start]}<b>{english[start:end]}</b>"
            asked.append((f"<p>{tagged}{english[end:]}</p>", left, right))
    if not asked:
        raise UserError(
            "the model must have learnt the demo's grammar. Received: one "
            f"that translates none of {count} sentences as that does"
        )
    text = "\n".join(document for document, _, _ in asked)
    found = translate_markup(text, "html", translator).content.split("\n")
    exact = nearly = 0
    for document, (_, left, right) in zip(found, asked, strict=True):
        held = re.search("<b>(.*)</b>", document)[1]
        exact += held.lower() == right.lower()
        nearly += strip_determiner(held, left) == strip_determiner(right, left)
    return {
        "sentences": count,
        "tags": len(asked),
        "word for word": exact / len(asked),
        "but for a, de, el": nearly / len(asked),
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.markup_accuracy", description=__doc__
    )
    parser.add_argument("--export-dir", type=pathlib.Path, required=True)
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(argv)
    with exit_on_user_error():
        translator = make_sentence_translator(load_export(options.export_dir))
        found = measure(translator, options.sentences, options.seed)
    for name, value in found.items():
        print(f"{name:18} {value:,.4g}")


if __name__ == "__main__":
    main()
