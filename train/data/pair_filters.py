"""Filters of training pairs: length ratio, copies, scripts, duplicates."""

import collections
import dataclasses
import itertools
import math
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np

from command_line.options import flag, option
from train.data.corpus import Corpus
from train.data.corpus_statistics import find_repeats, hash_lines, hash_pairs

# Japanese mixes three scripts.
SAME_SCRIPT = dict.fromkeys(("HIRAGANA", "KATAKANA", "BOPOMOFO"), "CJK")
SCRIPT_SAMPLE = 10_000  # Pairs that decide the script of a side.
CHUNK = 1 << 16  # Pairs that are read together.
VERSION = 1  # Of the rules; encoded text depends on it.


def ratio(text: str) -> float:
    """Parses a ratio of a longer side to a shorter one, for argparse."""
    value = float(text)
    if not 1 <= value < math.inf:
        raise ValueError
    return value


@dataclasses.dataclass(frozen=True)
class PairFilters:
    """Training pairs that are dropped; the validation set stays whole."""

    max_length_ratio: float | None = option(
        None,
        "drop training pairs whose longer side has more than this many times "
        "the tokens of the shorter one (default: no limit)",
        kind=ratio,
        metavar="R",
    )
    drop_copies: bool = option(False, "drop training pairs whose target is the source")
    drop_wrong_script: bool = option(
        False,
        "drop training pairs with a side most of whose letters are not of the "
        "script that is most frequent on that side of the corpus",
    )
    drop_duplicates: bool = option(
        False, "drop training pairs that repeat an earlier pair of the same corpus"
    )

    def in_use(self) -> dict:
        """Returns the options that drop pairs, by name."""
        found = dataclasses.asdict(self).items()
        return {name: value for name, value in found if value}

    def flags(self) -> str:
        return ", ".join(map(flag, self.in_use()))


class PairSelector:
    """Finds the pairs to drop; may be called from several threads.

    Where duplicates or scripts matter, the corpus is read once more before it
    is encoded. Duplicates take nine bytes of memory a pair (a 64-bit hash of
    its text, and one flag), and about 0.4 GB more.
    """

    def __init__(self, filters: PairFilters, corpus: Corpus):
        self.names = tuple(filters.in_use())
        self._ratio = filters.max_length_ratio
        self._repeats = self._scripts = None
        if filters.drop_duplicates or filters.drop_wrong_script:
            print(f"reading {len(corpus):,} pairs for {filters.flags()}")
            self._read(filters, corpus)

    def _read(self, filters: PairFilters, corpus: Corpus) -> None:
        hashes = np.empty(len(corpus) * filters.drop_duplicates, np.uint64)
        letters = [collections.Counter(), collections.Counter()]
        step = -(-len(corpus) // SCRIPT_SAMPLE)
        pairs, start = iter(corpus), 0
        for chunk in iter(lambda: list(itertools.islice(pairs, CHUNK)), []):
            sides = list(zip(*chunk, strict=True))
            if filters.drop_duplicates:
                both = np.stack([hash_lines(side) for side in sides], axis=1)
                hashes[start : start + len(chunk)] = hash_pairs(both)
            for counts, side in zip(letters, sides, strict=True):
                for line in side[-start % step :: step]:
                    counts.update(count_letters(line))
            start += len(chunk)
        if filters.drop_duplicates:
            self._repeats = find_repeats(hashes)
        if filters.drop_wrong_script:
            self._scripts = [most_frequent(counts) for counts in letters]

    def find_dropped(
        self, first: int, texts: list[list[str]], lengths: list[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the name of each option, and which pairs it drops.

        Args:
            first: Int, number of the first of `n` successive pairs.
            texts: Lists of their `n` sources and `n` targets.
            lengths: Int arrays `(n,)`, tokens of both sides, EOS included.
        """
        pairs = list(zip(*texts, strict=True))
        for name in self.names:
            if name == "max_length_ratio":
                shorter, longer = np.sort(lengths, axis=0) - 1
                found = longer > self._ratio * shorter
            elif name == "drop_copies":
                found = [a == b for a, b in pairs]
            elif name == "drop_wrong_script":
                found = [self._has_wrong_script(p) for p in pairs]
            else:
                found = self._repeats[first : first + len(pairs)]
            yield name, np.array(found, bool)

    def _has_wrong_script(self, pair: Iterable[str]) -> bool:
        for text, script in zip(pair, self._scripts, strict=True):
            letters = count_letters(text)
            if 2 * letters[script] < letters.total():
                return True
        return False


class ScriptOfCharacter(dict):
    """The script of each character, `""` of those that are no letters."""

    def __missing__(self, character: str) -> str:
        script = ""
        if character.isalpha() and unicodedata.category(character) != "Lm":
            # Such as a letter of full width.
            normal = unicodedata.normalize("NFKC", character)[0]
            script = unicodedata.name(normal, " ").split(" ")[0].split("-")[0]
        self[character] = SAME_SCRIPT.get(script, script)
        return self[character]


SCRIPTS = ScriptOfCharacter()


def count_letters(text: str) -> collections.Counter:
    """Returns the number of letters of each script.

    A script is the first word of a character's name in Unicode, except that
    Chinese characters and the Japanese syllabaries are one.
    """
    counts = collections.Counter(map(SCRIPTS.__getitem__, text))
    del counts[""]
    return counts


def most_frequent(counts: collections.Counter) -> str:
    """Returns the most frequent script, Latin without letters."""
    return counts.most_common(1)[0][0] if counts else "LATIN"
