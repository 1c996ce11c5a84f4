"""Glossaries: which terms occur in a sentence, and which in its translation.

A term is a sequence of words. Letters with their marks are a word; each letter of a
script without blanks is one, and so is each sign. Blanks do not count. Where terms
overlap, the longest one is taken, and of equally long ones the first.
"""

import argparse
import collections
import itertools
import pathlib
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from command_line.errors import UserError
from command_line.text_files import read_lines
from documents.markup.markup_tokens import Span
from documents.markup.word_alignment import kind_of
from text_processing.placeholders import VARIABLE, find_untranslatable_spans

LOCATION = re.compile(r"(?:([\w-]+:[\w-]+)=)?(.*)")
Key = tuple[str, ...]  # The words of a term, in one case unless it matters.


class Match(NamedTuple):
    """A term in a text, from `start` to `end`, and its target term."""

    start: int
    end: int
    target: str


class Glossary:
    """Terms and their target terms.

    Args:
        terms: Pairs of a term and its target term, which is empty if the translation
            of the term is left out.
        match_case: Whether terms match in their own case only. Otherwise a target
            term in lower case gets a capital where it begins a sentence.

    Raises:
        ValueError: See `add`.
    """

    def __init__(self, terms: Iterable[tuple[str, str]] = (), match_case: bool = False):
        self.match_case = match_case
        self._targets = collections.ChainMap[Key, str]()
        # The length of the longest key by its first word.
        self._longest = collections.ChainMap[str, int]()
        for term, target in terms:
            self.add(term, target)

    def __bool__(self) -> bool:
        return bool(self._targets)

    def add(self, term: str, target: str) -> None:
        """Adds a term.

        Raises:
            ValueError: If it is empty or has another target term, or if its target
                term has a variable such as `{name}`.
        """
        key, target = self.key_of(term), " ".join(target.split())
        if not key:
            raise ValueError(f"a term may not be empty. Received: {term!r}")
        if found := VARIABLE.search(target):
            raise ValueError(
                f"a target term may not have a variable. Received: {found[0]}"
            )
        own = self._targets.maps[0]
        if own.get(key, target) != target:
            raise ValueError(
                f"a term must have one target term. Received: {term.strip()} as "
                f"{own[key]} and as {target}"
            )
        self._put(key, target)

    def overridden_by(self, terms: Iterable[tuple[str, str]]) -> "Glossary":
        """Returns a glossary with other terms, which replace equal ones of this."""
        found = Glossary((), self.match_case)
        # Shared, not copied: a glossary may be large, and requests many.
        found._targets = self._targets.new_child()
        found._longest = self._longest.new_child()
        for term, target in terms:
            found.add(term, target)
        return found

    def find(self, text: str) -> list[Match]:
        """Returns the terms of a text, in order, but for those in a URL or the like."""
        if not self:
            return []
        spans = find_pieces(text)
        words = [self._fold(text[start:end]) for start, end in spans]
        wholes = find_untranslatable_spans(text)
        inside = {place for whole in wholes for place in range(whole[0] + 1, whole[1])}
        found = []
        for first, (start, _) in enumerate(spans):
            stop = first + self._longest.get(words[first], 0)
            for last in range(first, min(stop, len(words))):
                target = self._targets.get(tuple(words[first : last + 1]))
                end = spans[last][1]
                if target is not None and start not in inside and end not in inside:
                    found.append((first - last, Match(start, end, target)))
        is_free, chosen = np.ones(len(text), bool), []
        for _, match in sorted(found):
            if is_free[match.start : match.end].all():
                is_free[match.start : match.end] = False
                chosen.append(match)
        return sorted(chosen)

    def count(self, text: str, translation: str) -> tuple[int, int]:
        """Counts the target terms that a translation must have, and those it has."""
        matches = self.find(text)
        wanted = collections.Counter(self.key_of(m.target) for m in matches if m.target)
        found = self.find_targets(matches, translation)
        present = collections.Counter(self.key_of(match.target) for match in found)
        return wanted.total(), (wanted & present).total()

    def lacks(self, text: str, translation: str) -> bool:
        """Returns whether a translation lacks a target term, or one is empty."""
        total, present = self.count(text, translation)
        return present < total or not all(match.target for match in self.find(text))

    def find_targets(self, matches: list[Match], translation: str) -> list[Match]:
        """Returns the target terms of matches that a translation has."""
        targets = Glossary((), self.match_case)
        for match in matches:
            if match.target:
                targets._put(self.key_of(match.target), match.target)
        return targets.find(translation)

    def in_case(self, target: str, before: str, sample: str) -> str:
        """Returns a target term as it is after a text, and in place of a sample."""
        is_first = not any(map(str.isalnum, before))
        if self.match_case or not (is_first and sample[:1].isupper()):
            return target
        return target[:1].upper() + target[1:] if target.islower() else target

    def key_of(self, term: str) -> Key:
        return tuple(self._fold(term[slice(*span)]) for span in find_pieces(term))

    def _fold(self, word: str) -> str:
        word = unicodedata.normalize("NFKC", word)
        return word if self.match_case else word.casefold()

    def _put(self, key: Key, target: str) -> None:
        self._targets[key] = target
        self._longest[key[0]] = max(self._longest.get(key[0], 0), len(key))


def find_pieces(text: str) -> list[Span]:
    """Returns the spans of the words of terms and of texts, without blanks.

    Example:
        >>> text = "l'été, 東京"
        >>> [text[start:end] for start, end in find_pieces(text)]
        ['l', "'", 'été', ',', '東', '京']
    """
    kinds = list(map(kind_of, text))
    starts = [
        place
        for place, (before, kind) in enumerate(itertools.pairwise(["blank", *kinds]))
        if not place
        or (kind != "mark" and not (kind == "letter" and before in ("letter", "mark")))
    ]
    spans = itertools.pairwise([*starts, len(text)])
    return [(start, end) for start, end in spans if kinds[start] != "blank"]


class GlossaryFile(NamedTuple):
    """A file of terms, and the pair of codes that it is read for, or `""`."""

    pair: str
    path: pathlib.Path


def parse_glossary_option(text: str) -> GlossaryFile:
    """Parses `[SOURCE:TARGET=]FILE`, for argparse."""
    pair, path = LOCATION.fullmatch(text).groups()
    if not path:
        raise argparse.ArgumentTypeError(f"must be a file. Received: {text!r}")
    return GlossaryFile(pair or "", pathlib.Path(path))


def read_glossary(file: GlossaryFile, match_case: bool = False) -> Glossary:
    """Reads a file of terms, see `add_line`; `#` begins a comment.

    Raises:
        UserError: If a line is wrong, with its number, or no term is for the pair.
    """
    glossary = Glossary(match_case=match_case)
    for number, line in enumerate(read_lines(file.path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            add_line(glossary, line, file.pair)
        except ValueError as error:
            raise UserError(f"{file.path}, line {number}: {error}") from None
    if not glossary:
        of_pair = f" for {file.pair}" if file.pair else ""
        raise UserError(f"{file.path} must have a term{of_pair}. Received: none")
    return glossary


def add_line(glossary: Glossary, line: str, pair: str) -> None:
    """Adds the term of a line: a term, a tab and its target term.

    A line with another tab and a pair of codes such as `en:pt` is for that pair only.
    """
    term, *rest = line.split("\t")
    if len(rest) not in (1, 2):
        raise ValueError(
            "must be a term, a tab and its target term, and maybe a tab and a pair "
            f"of codes. Received: {line[:80]}"
        )
    codes = "".join(rest[1:]).strip()
    if codes and not pair:
        raise ValueError(
            f"is for {codes}: write --glossary with the pair, as in "
            f"{codes}=FILE. Received: no pair"
        )
    if codes.lower() in ("", pair.lower()):
        glossary.add(term, rest[0])
