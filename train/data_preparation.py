"""Prepares the vocabulary and the encoded text of a run."""

import dataclasses

from command_line.text_files import write_atomically
from keras_transformer.tokenizer import read_protos
from train.data.corpus import Corpus, Pairs, read_all, write_demo_tests
from train.data.encoded_corpus import Encoded, encode_corpus
from train.data.vocabulary import make_vocabulary
from train.monitoring.corpus_and_cost_report import warn_of_unknown_text
from train.options import PARSING, Options
from train.run.fine_tuning import FinishedRun
from train.run.run_description import RunDescription


def load_or_learn_vocabulary(
    options: Options, training: Corpus, start: FinishedRun | None, resumes: bool
) -> tuple[bytes, bytes | None]:
    """Returns the tokenizers' protos; a new run learns its vocabulary here."""
    run_dir = options.run.run_dir
    if not resumes:
        size = options.corpus.vocabulary_size
        source, target = (
            start.protos
            if start
            else (
                make_vocabulary(options.vocabulary, training, size, options.cache),
                None,
            )
        )
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
    options: Options,
    pairs: tuple[Corpus, Corpus],
    start: FinishedRun | None,
    description: RunDescription,
    resumes: bool,
) -> PreparedData:
    """Learns the vocabulary and encodes the text, or reads both from cache."""
    if options.corpus.dataset == "demo":
        write_demo_tests(options.run.run_dir / "demo")
    protos = load_or_learn_vocabulary(options, pairs[0], start, resumes)
    source, target = protos
    # The small one first: it reveals errors early.
    arguments = source, options.corpus.max_length, options.cache, target
    validation = encode_corpus(pairs[1], *arguments)
    training = encode_corpus(pairs[0], *arguments, options.filters)
    if start:
        warn_of_unknown_text(training.pairs, protos)
    translates = options.validation.validate_bleu != 0
    # Read the text now: the files may not exist any more at the end.
    is_text = translates and options.corpus.task != PARSING
    text = read_all(pairs[1]) if is_text else None
    return PreparedData(protos, training, validation, text, description)
