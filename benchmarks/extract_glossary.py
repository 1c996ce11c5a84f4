"""Makes a glossary of a corpus: words and their translations.

Both have four letters or more, and occur in three sentences or more. Of all
pairs the 200 of the largest Dice coefficient are taken, `2 n(s, t) / (n(s) +
n(t))`, where `n` counts sentences; each word once. Words that are their own
translation are left out. A target term is written as it is most often. The
terms that each of the `--translations` has are counted.
"""

import argparse
import collections
import itertools
import pathlib

from command_line.text_files import read_lines
from documents.glossary import Glossary, find_pieces
from translate.evaluate import count_terms

MIN_SENTENCES, MIN_LETTERS = 3, 4
MAX_TERMS = 200


def find_words(text: str) -> dict[str, str]:
    """Returns the words of a sentence by their form in lower case."""
    words = [text[start:end] for start, end in find_pieces(text)]
    return {w.lower(): w for w in words if len(w) >= MIN_LETTERS and w.isalpha()}


def choose_terms(sources: list[str], targets: list[str]) -> dict[str, str]:
    """Returns the terms of sentences and their target terms, the best first."""
    sides = [list(map(find_words, side)) for side in (sources, targets)]
    totals = [collections.Counter(itertools.chain(*side)) for side in sides]
    forms = collections.Counter(pair for words in sides[1] for pair in words.items())
    together = collections.Counter()
    for pair in zip(*sides, strict=True):
        together.update(itertools.product(*pair))

    def rank(pair):
        total = sum(counts[word] for counts, word in zip(totals, pair, strict=True))
        return -2 * together[pair] / total, -together[pair], pair

    # The commonest of a word comes last.
    written = {word: form for (word, form), _ in reversed(forms.most_common())}
    terms = {}
    for source, target in sorted(together, key=rank):
        is_rare = min(totals[0][source], totals[1][target]) < MIN_SENTENCES
        if not (is_rare or source in terms or target in terms.values()):
            terms[source] = target
    pairs = ((s, written[t]) for s, t in terms.items() if s != t)
    return dict(itertools.islice(pairs, MAX_TERMS))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.extract_glossary", description=__doc__
    )
    for name in ("source", "reference", "output"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--translations", type=pathlib.Path, nargs="*", default=[])
    options = parser.parse_args(argv)
    sides = [list(read_lines(path)) for path in (options.source, options.reference)]
    terms = choose_terms(*sides)
    lines = [f"{source}\t{target}\n" for source, target in terms.items()]
    options.output.write_text("".join(lines), encoding="utf-8")
    for path in options.translations:
        found = count_terms(Glossary(terms.items()), sides[0], list(read_lines(path)))
        print(f"{path}: {found['translated']} of {found['count']} terms")


if __name__ == "__main__":
    main()
