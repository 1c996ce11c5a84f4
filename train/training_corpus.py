"""Opens the training and the validation pairs of a run, as its options say."""

import fractions
import pathlib
import re
from collections.abc import Collection

from command_line.errors import UserError
from train.data.corpus import SIDES, Corpus, Mixture, read_all, write_pairs
from train.data.corpus_loading import Source, open_corpus, open_files, read_mixture
from train.data.derived_corpora import (
    InLanguages,
    Reversed,
    Tagged,
    WithPlaceholders,
    with_temperature,
)
from train.data.held_out import hold_out
from train.options import CorpusOptions, Options


def load_corpus(given: Options) -> tuple[Corpus, Corpus]:
    """Returns the training and the validation pairs."""
    corpus, cache = given.corpus, given.cache
    sources, has_tags = open_sources(given)
    if corpus.holds_out:
        validation = [s.validation for s in sources if s.validation is not None]
    elif has_tags or any(source.validation is not None for source in sources):
        raise UserError(
            "options must name no validation pairs where the sources of --mixture "
            "have several target languages, or name their own. Received: both"
        )
    else:
        validation = [open_split(corpus, "validation", cache)]

    def finish(part: Corpus) -> Corpus:
        part = WithPlaceholders(part) if corpus.placeholders else part
        return Tagged(part) if has_tags else part

    training = [(finish(source.corpus), source.weight) for source in sources]
    if corpus.sampling_temperature:
        training = with_temperature(training, corpus.sampling_temperature)
    return join(training), join([(finish(part), 1) for part in validation])


def open_sources(given: Options) -> tuple[list[Source], bool]:
    """Returns the training sources, and whether they have several target languages.

    Each has its validation pairs, unless options or other sources of the same
    languages name some.
    """
    corpus, cache = given.corpus, given.cache
    if not corpus.mixture:
        sources, has_tags = [Source(open_split(corpus, "train", cache))], False
    else:
        sources, has_tags = read_mixture(corpus.mixture, cache, corpus.languages)
    if not corpus.holds_out:
        return sources, has_tags
    languages = [source.corpus.languages() for source in sources]
    named = {s.corpus.languages() for s in sources if s.validation is not None}
    sources = [
        s if s.corpus.languages() in named else divide(s, languages, given)
        for s in sources
    ]
    return sources, has_tags


def divide(
    source: Source, languages: Collection[tuple[str, str]], given: Options
) -> Source:
    """Holds out the validation pairs of a source."""
    codes = source.corpus.languages()
    # Those of both directions of a corpus are to be the same pairs.
    turned = codes[::-1] in languages and codes > codes[::-1]
    corpus = Reversed(source.corpus) if turned else source.corpus
    parts = hold_out(
        corpus, given.corpus.validation_size, given.training.seed, given.cache
    )
    training, validation = map(Reversed, parts) if turned else parts
    return Source(training, source.weight, InLanguages(validation, codes), True)


def join(parts: list[tuple[Corpus, fractions.Fraction]]) -> Corpus:
    """Returns the only corpus, if its weight is 1, or a mixture."""
    return parts[0][0] if [weight for _, weight in parts] == [1] else Mixture(parts)


def open_split(corpus: CorpusOptions, split: str, cache: pathlib.Path) -> Corpus:
    if corpus.dataset is None:
        path = getattr(corpus, f"{split}_pairs")
        sides = [getattr(corpus, f"{split}_{side}") for side in SIDES]
        return open_files([path] if path else sides, corpus.languages, cache)
    part = getattr(corpus, f"{split}_split") or split
    return open_corpus(corpus.dataset, part, cache, corpus.languages)


def write_held_out(given: Options) -> None:
    """Writes the text that is held out to two files of the run folder for a source."""
    sources, _ = open_sources(given)
    for number, source in enumerate(sources, 1):
        if not source.is_held_out:
            continue
        languages = source.corpus.languages()
        # The name of a column may be no name of a file.
        are_names = all(re.fullmatch(r"[\w-]+", language) for language in languages)
        suffixes = languages if are_names and len({*languages}) == 2 else SIDES
        stem = f"held_out.{number}" if len(sources) > 1 else "held_out"
        paths = [given.run.run_dir / f"{stem}.{suffix}" for suffix in suffixes]
        write_pairs(read_all(source.validation), paths)
        print(
            f"{len(source.validation):,} pairs are held out for validation, in "
            f"{paths[0]} and {paths[1]}; {len(source.corpus):,} pairs of other sources "
            "are the training set"
        )
