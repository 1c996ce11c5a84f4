"""Measures the alignment error rate on sentences of the embedded grammar.

    python -m benchmarks.alignment_error --write runs/links
    python -m benchmarks.alignment_error --export-dir exports/one exports/other

The grammar fills the same slots of both sides, so it says which words belong
together. `--write` writes sentences and their links for `python -m train
--alignments`. Exports align the reference translations of 500 other sentences.
The error is that of Och and Ney (2003): links are sure between nouns, between
determiners, between adjectives, and between slots of one word each; between the
other words of a slot they are possible. Words of the patterns themselves, which
have no link, are left out.
"""

import argparse
import pathlib
import random
import re
from collections.abc import Iterator

from command_line.errors import exit_on_user_error
from demo_corpus import generator
from demo_corpus.parts_of_speech import Phrase
from translate.loading import load_export
from translate.runtime.runtime import Runtime

SIZES = {"train": 20_000, "valid": 500, "test": 500}
LANGUAGES = "english", "spanish"
SEED = 0
Links = set[tuple[int, int]]


def fill(scene: generator.Sentence, language: str) -> tuple[str, list[str]]:
    """Returns the text of a side, and the slot of each character, or ""."""
    parts = list(scene.fill_parts(language))
    text = "".join(written for _, written in parts)
    return text, [slot for slot, written in parts for _ in written]


def apply_rule(
    rule: re.Pattern, replacement: str, text: str, owners: list[str]
) -> tuple[str, list[str]]:
    """Replaces text; what is new belongs to the end of what it replaces."""
    new_text, new_owners, end = "", [], 0
    for match in rule.finditer(text):
        written = match.expand(replacement)
        new_text += text[end : match.start()] + written
        new_owners += owners[end : match.start()]
        new_owners += owners[match.end() - len(written) : match.end()]
        end = match.end()
    return new_text + text[end:], new_owners + owners[end:]


def find_slots(text: str, owners: list[str]) -> dict[str, list[int]]:
    """Returns the words of each slot."""
    found = {}
    for place, match in enumerate(re.finditer(r"\S+", text)):
        of_word = {
            owner
            for letter, owner in zip(
                match[0], owners[match.start() : match.end()], strict=True
            )
            if letter.isalnum() and owner
        }
        for slot in of_word:
            found.setdefault(slot, []).append(place)
    return found


def link_slot(
    phrase: object, words: tuple[list[str], ...], places: tuple[list[int], ...]
) -> tuple[Links, Links]:
    """Returns the sure links of a slot, and the other possible ones.

    Args:
        phrase: The word or phrase of the slot.
        words: Words of its sides, lower-cased and without punctuation.
        places: Their places in the sentences.
    """
    rest = [list(side) for side in places]
    sure = set()

    def link(first: int, second: int) -> None:
        sure.add((first, second))
        rest[0].remove(first)
        rest[1].remove(second)

    if noun := isinstance(phrase, Phrase) and phrase.noun:
        nouns = (
            {noun.english.lower(), noun.english_plural.lower()},
            {noun.spanish.lower(), noun.spanish_plural.lower()},
        )
        first, second = (
            [place for word, place in zip(*side, strict=True) if word in forms]
            for *side, forms in zip(words, places, nouns, strict=True)
        )
        if len(first) == len(second) == 1:
            link(first[0], second[0])
        # The determiner stands first in both languages.
        starts = [side[0] for side in places]
        if min(map(len, rest)) > 1 and [side[0] for side in rest] == starts:
            link(*starts)
    if len(rest[0]) == len(rest[1]) == 1:
        link(rest[0][0], rest[1][0])
    return sure, {(i, j) for i in rest[0] for j in rest[1]}


def draw_pair(rng: random.Random) -> tuple[tuple[str, str], Links, Links]:
    """Returns a pair of sentences, its sure links and its possible ones."""
    scene = generator.Sentence(rng.choice(generator.patterns()), rng)
    sides = [fill(scene, language) for language in LANGUAGES]
    for rule, replacement in generator.SPANISH_RULES:
        sides[1] = apply_rule(rule, replacement, *sides[1])
    words = [
        [re.sub(r"\W", "", word).lower() for word in text.split()] for text, _ in sides
    ]
    slots = [find_slots(*side) for side in sides]
    sure, possible = set(), set()
    for slot in slots[0].keys() & slots[1].keys():
        places = tuple(of_side[slot] for of_side in slots)
        of_slot = tuple(
            [side[i] for i in chosen]
            for side, chosen in zip(words, places, strict=True)
        )
        surely, maybe = link_slot(scene.drawn[slot], of_slot, places)
        sure |= surely
        possible |= maybe
    english, spanish = (generator.capitalize(text) for text, _ in sides)
    return (english, spanish), sure, sure | possible


def draw_splits() -> dict[str, list[tuple]]:
    """Returns the pairs with their links by split; no sentence occurs twice."""
    rng, found = random.Random(SEED), {}
    while len(found) < sum(SIZES.values()):
        drawn = draw_pair(rng)
        found.setdefault(drawn[0][0], drawn)
    rows = iter(found.values())
    return {split: [next(rows) for _ in range(size)] for split, size in SIZES.items()}


def write(folder: pathlib.Path) -> None:
    """Writes the sentences of each split, and their links."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in draw_splits().items():
        for side, suffix in enumerate(("en", "es")):
            texts = [row[0][side] for row in rows]
            write_lines(folder / f"{split}.{suffix}", texts)
        links = [
            " ".join(f"{i}-{j}" for i, j in sorted(possible)) for _, _, possible in rows
        ]
        write_lines(folder / f"{split}.links", links)


def write_lines(path: pathlib.Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def align(runtime: Runtime, pairs: list[tuple[str, str]]) -> Iterator[Links]:
    """Yields the links between words that an export's `align` finds.

    Those of the punctuation of a word are left out.
    """
    for source, target in pairs:
        found = runtime.ask_one("align", source=source.encode(), target=target.encode())
        sources, targets = (
            number_words(found[name]) for name in ("source_tokens", "target_tokens")
        )
        places = found["alignment"]
        yield {
            (sources[place], targets[i])
            for i, place in enumerate(places)
            if targets[i] is not None and sources[place] is not None
        }


def number_words(pieces: list[bytes]) -> list[int | None]:
    """Returns the number of each piece's word, `None` for punctuation."""
    numbers, number = [], -1
    for piece in pieces:
        text = piece.decode()
        number += text.startswith("▁")
        is_word = text != "</s>" and any(map(str.isalnum, text))
        numbers.append(number if is_word else None)
    return numbers


def error_rate(rows: list[tuple], found: list[Links]) -> float:
    """Returns 1 - (|A & S| + |A & P|) / (|A| + |S|) of all sentences.

    `A` are the links found, of words that have a possible link; `S` the sure
    ones, and `P` the possible ones.
    """
    right = total = 0
    for (_, sure, possible), links in zip(rows, found, strict=True):
        known = {target for _, target in possible}
        asked = {link for link in links if link[1] in known}
        right += len(asked & sure) + len(asked & possible)
        total += len(asked) + len(sure)
    return 1 - right / total


def measure(export_dirs: list[pathlib.Path]) -> None:
    rows = draw_splits()["test"]
    for export_dir in export_dirs:
        runtime = load_export(export_dir)
        found = list(align(runtime, [row[0] for row in rows]))
        print(
            f"{export_dir}: alignment error {error_rate(rows, found):.1%} of "
            f"{len(rows)} sentences"
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alignment_error",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("--write", type=pathlib.Path, help="folder for sentences and links")
    exports = "exports with `align` (--signatures all), which are measured"
    add("--export-dir", type=pathlib.Path, nargs="+", help=exports)
    options = parser.parse_args(argv)
    with exit_on_user_error():
        if options.write:
            write(options.write)
        else:
            measure(options.export_dir)


if __name__ == "__main__":
    main()
