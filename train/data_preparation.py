"""Opens the corpus of a run, describes the run, and encodes the text."""

import dataclasses
import pathlib
import re

from command_line.bleu_tokenizer import choose_tokenizer, make_bleu
from command_line.options import replace_values
from command_line.text_files import write_atomically
from keras_transformer import Preset
from keras_transformer.tokenizer import read_protos
from train import options
from train.data.corpus import (
    SIDES,
    Corpus,
    Pairs,
    TreePairs,
    read_all,
    write_demo_tests,
    write_pairs,
)
from train.data.corpus_loading import open_corpus, open_files, read_mixture
from train.data.derived_corpora import in_both_directions, with_placeholders
from train.data.encoded_corpus import DigestCachedCorpus, Encoded, encode_corpus
from train.data.held_out import WithoutSources, hold_out
from train.data.vocabulary import VocabularySizeError, make_vocabulary
from train.loop.update_options import DEFAULT_NUM_EPOCHS
from train.options import CorpusOptions, Options
from train.run import run_description
from train.run.fine_tuning import FinishedRun
from train.run.run_description import RunDescription


def load_corpus(given: Options) -> tuple[Corpus, Corpus]:
    """Returns the training and the validation pairs."""
    corpus, cache = given.corpus, given.cache
    if corpus.is_parsing:
        paths = [getattr(corpus, name) for name in options.TREES]
        return tuple(
            DigestCachedCorpus(TreePairs(path), [path], cache) for path in paths
        )
    if corpus.holds_out:
        pairs = divide(given)
    elif corpus.mixture:
        training = read_mixture(
            corpus.mixture, cache, corpus.languages, corpus.data_dir
        )
        pairs = training, open_split(corpus, "validation", cache)
    else:
        pairs = [open_split(corpus, name, cache) for name in ("train", "validation")]
    return tuple(map(with_placeholders, pairs) if corpus.placeholders else pairs)


def divide(given: Options) -> tuple[WithoutSources, Pairs]:
    """Holds out the validation pairs of the training files."""
    corpus = open_split(given.corpus, "train", given.cache)
    size = given.corpus.validation_size
    return hold_out(corpus, size, given.training.seed, given.cache)


def open_split(corpus: CorpusOptions, split: str, cache: pathlib.Path) -> Corpus:
    if corpus.dataset is None:
        path = getattr(corpus, f"{split}_pairs")
        sides = [getattr(corpus, f"{split}_{side}") for side in SIDES]
        files = [path] if path else sides
        pairs = open_files(files, corpus.languages)
        return DigestCachedCorpus(pairs, files, cache)
    return open_corpus(
        corpus.dataset,
        getattr(corpus, f"{split}_split") or split,
        cache,
        corpus.languages,
        corpus.data_dir,
    )


def resolve_tokenizer(given: Options, pairs: tuple[Corpus, Corpus]) -> Options:
    """Fills in BLEU's tokenizer, which depends on the target language."""
    if given.corpus.is_parsing:
        return given
    validation = given.validation
    tokenize = validation.bleu_tokenize or choose_tokenizer(
        *[corpus.languages()[1] for corpus in reversed(pairs)]
    )
    if validation.validate_bleu != 0:
        make_bleu(tokenize)
    return replace_values(given, bleu_tokenize=tokenize)


def describe_run(
    given: Options,
    preset: Preset,
    pairs: tuple[Corpus, Corpus],
    start: FinishedRun | None,
) -> tuple[RunDescription, bool]:
    """Returns the run's description, and whether the run is resumed."""
    arguments = given.arguments()
    if start and start.transformer.source_vocabulary_size is not None:
        size = start.transformer.source_vocabulary_size
        arguments["source_vocabulary_size"] = size
    description = run_description.describe(
        arguments,
        preset,
        *pairs,
        start.digests if start else given.vocabulary.digests(),
    )
    if start:
        description.decoding = start.decoding
    sources = [corpus.languages()[0] for corpus in reversed(pairs)]
    description.source_language = next(filter(None, sources), "")
    description.revision = pairs[0].revision()
    earlier = description.find_earlier(given.run.run_dir, options.NOT_COMPARED)
    default = max(100, preset.recipe.steps // DEFAULT_NUM_EPOCHS)
    if earlier:
        default, description.packages = earlier.steps_per_epoch, earlier.packages
        # The batches of a run that is resumed stay the same.
        description.row_multiple = earlier.row_multiple
    description.steps_per_epoch = given.training.steps_per_epoch or default
    return description, earlier is not None


def fit_vocabulary_size(given: Options, training: Corpus) -> Options:
    """Takes the size nearest to the default one that the text supports."""
    corpus, size = given.corpus, given.corpus.vocabulary_size
    if given.run.both_directions:
        training = in_both_directions(training)
    try:
        make_vocabulary(given.vocabulary, training, size, given.cache)
    except VocabularySizeError as error:
        size = error.nearest
        print(f"the text of {len(training):,} pairs supports --vocabulary-size {size}")
    return dataclasses.replace(
        given, corpus=dataclasses.replace(corpus, vocabulary_size=size)
    )


def load_or_learn_vocabulary(
    given: Options, training: Corpus, start: FinishedRun | None, resumes: bool
) -> tuple[bytes, bytes | None]:
    """Returns the tokenizers' protos; a new run learns its vocabulary here."""
    run_dir = given.run.run_dir
    if not resumes:
        if start:
            source, target = start.protos
        else:
            size = given.corpus.vocabulary_size
            source = make_vocabulary(given.vocabulary, training, size, given.cache)
            target = None
        write_atomically(run_dir / "tokenizer.model", source)
        path = run_dir / "target_tokenizer.model"
        path.unlink(missing_ok=True)  # Left over from a run that was refused.
        if target is not None:
            write_atomically(path, target)
    return read_protos(run_dir)


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """Data of a run; on several workers the chief prepares it.

    Attributes:
        protos: SentencePiece models of sources and of targets; the second is
            `None` if both sides share one.
        training: The encoded corpus.
        validation: The encoded validation set.
        validation_text: The validation set as text, for BLEU, with the pairs
            that encoding dropped, or `None` without one.
        description: Content of `arguments.json`.
    """

    protos: tuple[bytes, bytes | None]
    training: Encoded
    validation: Encoded
    validation_text: Pairs | None
    description: RunDescription


def prepare(
    given: Options,
    pairs: tuple[Corpus, Corpus],
    start: FinishedRun | None,
    description: RunDescription,
    resumes: bool,
) -> PreparedData:
    """Learns the vocabulary and encodes the text, or reads both from cache."""
    if given.corpus.dataset == "demo":
        write_demo_tests(given.run.run_dir / "demo")
    if given.corpus.holds_out:
        write_held_out(given)
    protos = load_or_learn_vocabulary(given, pairs[0], start, resumes)
    source, target = protos
    # The small one first: it reveals errors early.
    arguments = source, given.corpus.max_length, given.cache, target
    validation = encode_corpus(pairs[1], *arguments)
    training = encode_corpus(pairs[0], *arguments)
    translates = given.validation.validate_bleu != 0
    # Read the text now: the files may not exist any more at the end.
    is_text = translates and not given.corpus.is_parsing
    text = read_all(pairs[1]) if is_text else None
    return PreparedData(protos, training, validation, text, description)


def write_held_out(given: Options) -> None:
    """Writes the text that is held out to two files of the run folder."""
    training, held_out = divide(given)
    languages = training.languages()
    # The name of a column may be no name of a file.
    are_names = all(re.fullmatch(r"[\w-]+", language) for language in languages)
    suffixes = languages if are_names and len({*languages}) == 2 else SIDES
    paths = [given.run.run_dir / f"held_out.{suffix}" for suffix in suffixes]
    write_pairs(held_out, paths)
    print(
        f"{len(held_out):,} pairs are held out for validation, in {paths[0]} and "
        f"{paths[1]}; {len(training):,} pairs of other sources are the training set"
    )
