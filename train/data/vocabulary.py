"""Subword vocabulary of a run: its options, how it is learned, its cache."""

import dataclasses
import fractions
import hashlib
import io
import itertools
import pathlib
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from command_line.errors import UserError
from command_line.options import flag, option
from command_line.text_files import read_lines, write_atomically
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID
from train.data.corpus import Corpus, refuse_pipe
from train.data.encoded_corpus import cache_key, file_lock
from train.data.given_tokenizer import SPECIAL, read_tokenizer

FILE = {"kind": pathlib.Path, "metavar": "FILE", "tags": ("digested",)}
# Maximum pairs that a vocabulary is learned on; more would change it little.
SAMPLE = 300_000
BYTE = re.compile("<0x[0-9A-F]{2}>")  # The subword of a byte.
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


@dataclasses.dataclass(frozen=True)
class VocabularyOptions:
    """How text is split into subwords."""

    tokenizer: pathlib.Path | None = option(
        None,
        "a SentencePiece model (bpe or unigram) instead of one that is learned",
        **FILE,
    )
    symbols: pathlib.Path | None = option(
        None,
        "texts that are one subword each of the vocabulary that is learned, "
        "such as the tag <2es>, one a line; ▁ stands for a blank",
        **FILE,
    )

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of what the files hold, as hexadecimal."""
        contents = {}
        if self.tokenizer is not None:
            contents["tokenizer"] = read_tokenizer(self.tokenizer)
        if self.symbols is not None:
            contents["symbols"] = "\n".join(read_symbols(self.symbols)).encode()
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in contents.items()
        }


def check_vocabulary(
    given: VocabularyOptions,
    vocabulary_size: int | None,
    init_from: pathlib.Path | None,
) -> bytes | None:
    """Refuses options that exclude each other; returns the model of `--tokenizer`."""
    values = dataclasses.asdict(given).items()
    asked = [flag(name) for name, value in values if value is not None]
    if init_from and asked:
        raise UserError(
            "--init-from keeps its vocabulary; --extend-vocabulary adds "
            f"subwords. Received: --init-from {init_from} and "
            f"{', '.join(asked)}"
        )
    if given.tokenizer is None:
        return None
    if len(asked) > 1:
        raise UserError(
            "--tokenizer takes the place of a vocabulary that is learned, with "
            f"its symbols. Received: {' and '.join(asked)}"
        )
    proto = read_tokenizer(given.tokenizer)
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
    """Refuses a vocabulary that lacks placeholders or language tags of a corpus.

    Args:
        symbols: The corpus's.
        protos: The SentencePiece models.
        wanted: The option that they come from, and what would add subwords.
        path: Value of that option.
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
    given: VocabularyOptions, corpus: Corpus, size: int, cache: pathlib.Path
) -> bytes:
    """Returns the model of `--tokenizer`, or one of `size` that is learned."""
    if given.tokenizer is not None:
        return read_tokenizer(given.tokenizer)
    symbols = read_symbols(given.symbols) if given.symbols else []
    return cached_vocabulary(corpus, size, cache, symbols)


def read_symbols(path: pathlib.Path) -> list[str]:
    """Reads the symbols of a file, one a line; refuses others."""
    refuse_pipe(path)
    symbols = list(read_lines(path))
    check_pieces(symbols, "--symbols", path)
    return symbols


def check_pieces(pieces: list[str], option_name: str, path: pathlib.Path) -> None:
    """Refuses lines of an option's file that are not valid as new subwords."""
    special, seen = {name for name, _ in SPECIAL.values()}, set()
    for number, piece in enumerate(pieces, 1):
        where = option_name, path, number
        if not piece or piece.split() != [piece]:
            raise invalid_line_error(*where, "a subword; ▁ stands for a blank", piece)
        if piece in seen:
            raise invalid_line_error(*where, "another subword than those before", piece)
        if piece in special or BYTE.fullmatch(piece):
            raise invalid_line_error(*where, "no special subword", piece)
        seen.add(piece)


def invalid_line_error(
    option_name: str, path: pathlib.Path, number: int, wanted: str, piece: str
) -> UserError:
    return UserError(
        f"line {number} of {option_name} {path} must be {wanted}. Received: {piece!r}"
    )


def cached_vocabulary(
    corpus: Corpus,
    vocabulary_size: int,
    cache: pathlib.Path,
    symbols: Sequence[str] = (),
) -> bytes:
    """Returns `learn_vocabulary`'s model from the folder `cache`, or learns it."""
    arguments = corpus, vocabulary_size, symbols
    path = cache / f"{vocabulary_key(*arguments)}.model"
    if not path.exists():
        print(f"learning a vocabulary of {vocabulary_size:,} subwords")
        proto = learn_vocabulary(*arguments)
        with file_lock(path):
            write_atomically(path, proto)
    return path.read_bytes()


def vocabulary_key(
    corpus: Corpus, vocabulary_size: int, symbols: Sequence[str] = ()
) -> str:
    """Returns a digest of everything that a vocabulary depends on."""
    parts = [[part.digest(), str(weight)] for part, weight in corpus.parts()]
    return cache_key(parts, vocabulary_size, SAMPLE, TRAINING, list(symbols))


def learn_vocabulary(
    corpus: Corpus, vocabulary_size: int, symbols: Sequence[str] = ()
) -> bytes:
    """Learns a byte-pair encoding on both sides of a corpus.

    Characters that the vocabulary lacks are spelled in bytes, so only invalid
    UTF-8 is unknown. Of a corpus of more than 300,000 pairs, about as many are
    used, evenly spread, so that the sample fits in memory. Those of a mixture occur
    as often as they weigh. The corpus's symbols are one piece each.

    Args:
        corpus: The training corpus.
        vocabulary_size: Int, number of pieces, special and byte pieces
            included.
        symbols: More texts that are one subword each; `▁` stands for a blank.

    Returns:
        The serialized SentencePiece model.

    Raises:
        VocabularySizeError: If the text supports only fewer subwords, or if
            `vocabulary_size` is less than the number of characters.
    """
    model = io.BytesIO()
    sources, targets = zip(*sample_text(corpus, SAMPLE), strict=True)
    own = [symbol.replace(" ", "▁") for symbol in corpus.symbols()]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain(sources, targets),
            model_writer=model,
            vocab_size=vocabulary_size,
            user_defined_symbols=list(dict.fromkeys([*symbols, *own])),
            minloglevel=2,
            **TRAINING,
        )
    except RuntimeError as error:
        raise explain_sentencepiece_error(str(error), vocabulary_size) from None
    return model.getvalue()


def sample_text(corpus: Corpus, limit: int) -> list[tuple[str, str]]:
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
