"""Learns the shared subword vocabulary; holds encoded pairs (Section 5.1)."""

import dataclasses
import fractions
import functools
import io
import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np
import sentencepiece

from command_line.errors import UserError
from keras_transformer.masks import BOS_ID, EOS_ID, PADDING_ID
from keras_transformer.tokenizer import UNKNOWN_ID
from train.data.corpus import Corpus

# Maximum pairs that a vocabulary is learned on; more would change it little.
SAMPLE = 300_000
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
}


def learn_vocabulary(
    corpus: Corpus, vocabulary_size: int, symbols: Sequence[str] = ()
) -> bytes:
    """Learns a byte-pair encoding on both sides of a corpus.

    Characters that the vocabulary lacks are spelled in bytes, so only invalid
    UTF-8 is unknown. Of a corpus of more than 300,000 pairs, every k-th pair is
    used, so that the sample fits in memory. The corpus's symbols are one piece
    each.

    Args:
        corpus: The training corpus.
        vocabulary_size: Int, number of pieces, special and byte pieces
            included.
        symbols: More texts that are one subword each; `▁` stands for a blank.

    Returns:
        The serialized SentencePiece model.

    Raises:
        UserError: If the text supports only fewer subwords, or if
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
        raise UserError(
            explain_sentencepiece_error(str(error), vocabulary_size)
        ) from None
    return model.getvalue()


def sample_text(corpus: Corpus, limit: int) -> list[tuple[str, str]]:
    """Returns every k-th pair, with the least k that gives at most `limit`.

    Raises:
        UserError: If there are no pairs.
    """
    if not len(corpus):
        raise UserError("the corpus must have pairs. Received: none")
    step = -(-len(corpus) // limit)
    return list(itertools.islice(corpus, 0, None, step))


def explain_sentencepiece_error(message: str, vocabulary_size: int) -> str:
    received = f"Received: --vocabulary-size {vocabulary_size}"
    limit = re.search(r"value <= (\d+)", message)
    if limit:
        return (
            "the vocabulary is larger than the text supports, which is "
            f"{limit[1]} subwords. {received}"
        )
    needed = re.search(r"smaller than required_chars\D*\d+ vs (\d+)", message)
    if needed:
        return (
            "the vocabulary must hold the characters of the text, at least "
            f"{int(needed[1]) + 1} subwords. {received}"
        )
    return f"no vocabulary could be learnt: {message.strip()}. {received}"


@dataclasses.dataclass(frozen=True)
class Ids:
    """Id sequences of different lengths, concatenated.

    Attributes:
        flat: Int array of all ids; may be mapped from a file.
        offsets: Int array, one longer than there are sequences: sequence `i`
            is `flat[offsets[i] : offsets[i + 1]]`.
    """

    flat: np.ndarray
    offsets: np.ndarray

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Int32 array of the sequences' lengths."""
        return lengths_of(self.offsets)

    def pad(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns sequences `indices`, padded to an int32 `(n, length)`."""
        columns = np.arange(length)
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        real = columns < (ends - starts)[:, None]
        places = (starts[:, None] + columns)[real]
        padded = np.full(real.shape, PADDING_ID, np.int32)
        padded[real] = self.flat[places]
        return padded


def lengths_of(offsets: np.ndarray) -> np.ndarray:
    """Returns the lengths of sequences from their offsets."""
    lengths = np.empty(len(offsets) - 1, np.int32)
    np.subtract(offsets[1:], offsets[:-1], out=lengths, casting="unsafe")
    return lengths


@dataclasses.dataclass(frozen=True)
class JoinedIds:
    """The sequences of several `Ids`, concatenated without a copy.

    Attributes:
        parts: The `Ids`.
    """

    parts: tuple[Ids, ...]

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Int32 array of the sequences' lengths."""
        # The cached lengths of the parts would stay in memory too.
        return np.concatenate([lengths_of(part.offsets) for part in self.parts])

    def pad(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns sequences `indices`, padded to an int32 `(n, length)`."""
        padded = np.full((len(indices), length), PADDING_ID, np.int32)
        start = 0
        for part in self.parts:
            end = start + len(part.offsets) - 1
            mine = (start <= indices) & (indices < end)
            padded[mine] = part.pad(indices[mine] - start, length)
            start = end
        return padded


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """Line-aligned id sequences; each ends in EOS.

    Attributes:
        sources: Ids of the sentences.
        targets: Ids of their translations.
        parts: Tuple of the number of pairs and the weight of each part, in
            order. The weight is the average number of times that a pass has
            a pair. `None` means one part of weight 1.
        links: For each pair the numbers of links between its tokens, see
            `LinkEncoder`; `None` if none are known.
    """

    sources: Ids | JoinedIds
    targets: Ids | JoinedIds
    parts: tuple[tuple[int, fractions.Fraction], ...] | None = None
    links: Ids | JoinedIds | None = None

    def __len__(self) -> int:
        return len(self.sources.lengths)

    def slices(self) -> Iterator[tuple[slice, fractions.Fraction]]:
        """Yields the slice and the weight of each part."""
        start = 0
        for count, weight in self.parts or [(len(self), fractions.Fraction(1))]:
            yield slice(start, start + count), weight
            start += count


def take(ids: Ids, indices: np.ndarray) -> Ids:
    """Returns the sequences `indices`, in that order."""
    lengths = ids.lengths[indices]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    starts = np.repeat(ids.offsets[indices] - offsets[:-1], lengths)
    return Ids(ids.flat[starts + np.arange(offsets[-1])], offsets)
