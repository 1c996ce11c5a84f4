"""Subword vocabulary of a run: how it is learned, and its cache."""

import fractions
import io
import itertools
import pathlib
import re
from collections.abc import Iterable

import sentencepiece

from command_line.errors import UserError
from command_line.text_files import write_atomically
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID
from train.data.corpus import Corpus
from train.data.encoded_corpus import cache_key, file_lock
from train.data.given_tokenizer import read_tokenizer

# Maximum pairs that a vocabulary is learned on; more would change it little.
SAMPLE = 300_000
MAX_LINE_BYTES = 2**16 - 1
# Fixed options of SentencePiece's trainer. With one thread the same text gives
# the same model.
TRAINING = {
    "model_type": "bpe",
    "byte_fallback": True,
    "character_coverage": 0.9999,
    "pad_id": PADDING_ID,
    "eos_id": EOS_ID,
    "unk_id": UNKNOWN_ID,
    "bos_id": BOS_ID,
    "num_threads": 1,
    # Longer lines are left out. It counts positions in a word by 16 bits.
    "max_sentence_length": MAX_LINE_BYTES,
}


class VocabularySizeError(UserError):
    """A size that the text does not support; the nearest one that it does."""

    def __init__(self, message: str, nearest: int):
        super().__init__(message)
        self.nearest = nearest


def read_given_tokenizer(
    path: pathlib.Path | None, vocabulary_size: int | None
) -> bytes | None:
    """Returns the model of `--tokenizer`; refuses another `--vocabulary-size`."""
    if path is None:
        return None
    proto = read_tokenizer(path)
    size = count_pieces(proto)
    if vocabulary_size not in (None, size):
        raise UserError(
            f"--vocabulary-size must be that of --tokenizer, {size} subwords. "
            f"Received: --vocabulary-size {vocabulary_size}"
        )
    return proto


def count_pieces(proto: bytes) -> int:
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return model.get_piece_size()


def check_symbols(
    symbols: list[str], protos: Iterable[bytes | None], wanted: str, path: pathlib.Path
) -> None:
    """Refuses models that lack placeholders or language tags of a corpus.

    They come from the option `wanted`, whose value is `path`.
    """
    for proto in filter(None, protos):
        model = sentencepiece.SentencePieceProcessor(model_proto=proto)
        pieces = [symbol.replace(" ", "▁") for symbol in symbols]
        missing = [p for p in pieces if model.piece_to_id(p) == model.unk_id()]
        if missing:
            raise UserError(
                "--placeholders and language tags must be subwords of "
                f"{wanted}. Received: {path} without {', '.join(missing)}"
            )


def make_vocabulary(
    tokenizer: pathlib.Path | None, corpus: Corpus, size: int, cache: pathlib.Path
) -> bytes:
    """Returns the model of `--tokenizer`, or one that is learned or in the cache."""
    if tokenizer is not None:
        return read_tokenizer(tokenizer)
    path = cache / f"{vocabulary_key(corpus, size)}.model"
    if not path.exists():
        print(f"learning a vocabulary of {size:,} subwords")
        proto = learn_vocabulary(corpus, size)
        with file_lock(path):
            write_atomically(path, proto)
    return path.read_bytes()


def vocabulary_key(corpus: Corpus, vocabulary_size: int) -> str:
    """Returns a digest of everything that a vocabulary depends on."""
    parts = [[part.digest(), str(weight)] for part, weight in corpus.parts()]
    return cache_key(parts, vocabulary_size, SAMPLE, TRAINING)


def learn_vocabulary(corpus: Corpus, vocabulary_size: int) -> bytes:
    """Learns a byte-pair encoding on both sides of a corpus.

    Characters that the vocabulary lacks are spelled in bytes, so only invalid
    UTF-8 is unknown. Of a corpus of more than 300,000 pairs, about as many are
    used, evenly spread, so that the sample fits in memory. Those of a mixture occur
    as often as they weigh. The corpus's symbols are one piece each.

    Args:
        corpus: The training corpus.
        vocabulary_size: Int, number of pieces, special and byte pieces
            included.

    Returns:
        The serialized SentencePiece model.

    Raises:
        VocabularySizeError: If the text supports only fewer subwords, or if
            `vocabulary_size` is less than the number of characters.
    """
    model = io.BytesIO()
    sources, targets = zip(*sample_pairs(corpus, SAMPLE), strict=True)
    symbols = [symbol.replace(" ", "▁") for symbol in corpus.symbols()]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain(sources, targets),
            model_writer=model,
            vocab_size=vocabulary_size,
            user_defined_symbols=list(dict.fromkeys(symbols)),
            minloglevel=2,
            **TRAINING,
        )
    except RuntimeError as error:
        raise explain_sentencepiece_error(str(error), vocabulary_size) from None
    return model.getvalue()


def sample_pairs(corpus: Corpus, limit: int) -> list[tuple[str, str]]:
    """Returns at most about `limit` pairs, evenly spread, as often as they weigh."""
    total = sum(len(part) * weight for part, weight in corpus.parts())
    if not total:
        raise UserError("the corpus must have pairs. Received: none")
    pairs = []
    for part, weight in corpus.parts():
        share = weight * min(1, fractions.Fraction(limit) / total)
        wanted, of = share.numerator, share.denominator
        for number, pair in enumerate(part):
            # Rounded up, so that each part has a pair.
            times = -number * wanted // of - -(number + 1) * wanted // of
            pairs += [pair] * times
    return pairs


def explain_sentencepiece_error(message: str, vocabulary_size: int) -> UserError:
    received = f"Received: --vocabulary-size {vocabulary_size}"
    for pattern, wanted in (
        (r"value <= (\d+)", "is larger than the text supports, which is"),
        (
            r"smaller than required_chars\D*\d+ vs (\d+)",
            "must hold the characters of the text, at least",
        ),
    ):
        if found := re.search(pattern, message):
            text = f"the vocabulary {wanted} {found[1]} subwords. {received}"
            return VocabularySizeError(text, int(found[1]))
    if "sentences_.empty()" in message:
        return UserError(
            f"the text must have lines of at most {MAX_LINE_BYTES:,} bytes that are "
            "not empty. Received: none"
        )
    return UserError(f"no vocabulary could be learnt: {message.strip()}. {received}")
