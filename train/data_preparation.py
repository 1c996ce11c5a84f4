"""Describes a run, makes its vocabulary, and encodes its text."""

import dataclasses
import hashlib
import importlib.metadata
import pathlib

from command_line.bleu_tokenizer import choose_tokenizer, make_bleu
from command_line.errors import UserError
from command_line.text_files import write_atomically
from keras_transformer import Preset
from keras_transformer.tokenizer import read_protos
from text_processing.language_tags import LanguageTags
from train import options
from train.data.corpus import Corpus, Pairs, read_all, write_demo_tests
from train.data.derived_corpora import find_tags, in_both_directions
from train.data.encoded_corpus import Encoded, encode_corpus
from train.data.given_tokenizer import read_tokenizer
from train.data.vocabulary import VocabularySizeError, check_symbols, make_vocabulary
from train.loop.training_options import DEFAULT_NUM_EPOCHS
from train.options import Options
from train.run.fine_tuning import FinishedRun
from train.run.run_description import PACKAGES, RunDescription
from train.training_corpus import write_held_out


def group_for_bleu(
    given: Options, pairs: tuple[Corpus, Corpus]
) -> dict[str, tuple[str, list[int]]]:
    """Returns BLEU's tokenizer and the validation pairs of each two languages.

    Without a BLEU there are none.

    Raises:
        UserError: If a tokenizer is missing.
    """
    groups, start = {}, 0
    if given.validation.validate_bleu == 0:
        return groups
    for part, _ in pairs[1].parts():
        codes = part.languages()
        tokenize = given.validation.bleu_tokenize or choose_tokenizer(
            codes[1], pairs[0].languages()[1]
        )
        make_bleu(tokenize)
        _, indices = groups.setdefault("-".join(codes), (tokenize, []))
        indices += range(start, start + len(part))
        start += len(part)
    return groups


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
    check_start(given, pairs[0], start)
    tags = find_tags(pairs[0])
    languages = dataclasses.asdict(tags) if tags else {}
    sources = [corpus.languages()[0] for corpus in reversed(pairs)]
    training, validation = pairs
    description = RunDescription(
        arguments=arguments,
        preset=preset,
        packages={name: importlib.metadata.version(name) for name in PACKAGES},
        corpus={"train": training.digest(), "validation": validation.digest()},
        init=start.digests if start else digests_of_tokenizer(given.corpus.tokenizer),
        decoding=start.decoding if start else {},
        languages=(start and start.languages) or languages,
        source_language=next(filter(None, sources), ""),
        revision=training.revision(),
    )
    earlier = description.find_earlier(given.run.run_dir, options.NOT_COMPARED)
    default = max(100, preset.recipe.steps // DEFAULT_NUM_EPOCHS)
    if earlier:
        default, description.packages = earlier.steps_per_epoch, earlier.packages
        # The batches of a run that is resumed stay the same.
        description.row_multiple = earlier.row_multiple
    description.steps_per_epoch = given.training.steps_per_epoch or default
    return description, earlier is not None


def digests_of_tokenizer(path: pathlib.Path | None) -> dict[str, str]:
    """Returns the SHA-256 of the model of `--tokenizer`, as hexadecimal."""
    if path is None:
        return {}
    return {"tokenizer": hashlib.sha256(read_tokenizer(path)).hexdigest()}


def check_start(given: Options, corpus: Corpus, start: FinishedRun | None) -> None:
    """Refuses to start from a model or vocabulary without the corpus's symbols."""
    tags = find_tags(corpus)
    if start and start.languages:
        known = LanguageTags(**start.languages)
        if known.is_forced:
            raise UserError(
                "--init-from must be a model of one pair, or a run of a --mixture of "
                "several languages. Received: a converted model of several languages"
            )
        found = tags.target_tags if tags else {}
        if not found or found.keys() - known.target_tags.keys():
            raise UserError(
                f"--init-from {start.run_dir} needs a --mixture of at least two of "
                f"its target languages: {', '.join(known.target_tags)}. "
                f"Received: {', '.join(found) or 'no tags of languages'}"
            )
    if start:
        check_symbols(corpus.symbols(), start.protos, "--init-from", start.run_dir)
    elif path := given.corpus.tokenizer:
        proto = read_tokenizer(path)
        check_symbols(corpus.symbols(), [proto], "--tokenizer", path)


def fit_vocabulary_size(given: Options, training: Corpus) -> Options:
    """Takes the size nearest to the default one that the text supports."""
    corpus, size = given.corpus, given.corpus.vocabulary_size
    if given.run.both_directions:
        training = in_both_directions(training)
    try:
        make_vocabulary(corpus.tokenizer, training, size, given.cache)
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
            corpus, target = given.corpus, None
            size = corpus.vocabulary_size
            source = make_vocabulary(corpus.tokenizer, training, size, given.cache)
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
        validation_groups: For each two languages BLEU's tokenizer and the indices
            of their pairs in that text.
        description: Content of `arguments.json`.
    """

    protos: tuple[bytes, bytes | None]
    training: Encoded
    validation: Encoded
    validation_text: Pairs | None
    validation_groups: dict[str, tuple[str, list[int]]]
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
    groups = group_for_bleu(given, pairs)
    # Read the text now: the files may not exist any more at the end.
    text = read_all(pairs[1]) if groups else None
    return PreparedData(protos, training, validation, text, groups, description)
