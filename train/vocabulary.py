"""One subword vocabulary for both languages (Section 5.1)."""

import dataclasses
import io
import re

import numpy as np
import sentencepiece

from keras_transformer.decoding import BEGIN_ID
from keras_transformer.decoding import END_ID
from keras_transformer.errors import UserError
from keras_transformer.masks import PADDING_ID
from keras_transformer.tokenizer import UNKNOWN_ID
from train.corpus import Pairs


def learn_vocabulary(pairs: Pairs, vocabulary_size: int) -> bytes:
    """Learns a byte-pair encoding on both sides of a corpus.

    Characters that the vocabulary lacks are spelt in bytes, so that nothing
    but invalid UTF-8 is unknown.

    Args:
        pairs: The training corpus.
        vocabulary_size: Int, pieces in all, special and byte pieces included.

    Returns:
        The serialized SentencePiece model.

    Raises:
        UserError: If the text supports fewer pieces, or so few are asked for
            that its characters do not fit.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(pairs.sources + pairs.targets),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary_size,
            byte_fallback=True,
            character_coverage=0.9999,
            pad_id=PADDING_ID,
            eos_id=END_ID,
            unk_id=UNKNOWN_ID,
            bos_id=BEGIN_ID,
            num_threads=1,  # The same text gives the same model.
            minloglevel=2,
        )
    except RuntimeError as error:
        raise UserError(explain(str(error), vocabulary_size)) from None
    return model.getvalue()


def explain(message: str, vocabulary_size: int) -> str:
    received = f"Received: --vocabulary-size {vocabulary_size}"
    limit = re.search(r"value <= (\d+)", message)
    if limit:
        return (
            "the vocabulary is larger than the text supports, which is "
            f"{limit[1]} pieces. {received}"
        )
    needed = re.search(r"smaller than required_chars\D*\d+ vs (\d+)", message)
    if needed:
        return (
            "the vocabulary must hold the characters of the text, at least "
            f"{int(needed[1]) + 1} pieces. {received}"
        )
    return f"no vocabulary could be learnt: {message.strip()}. {received}"


@dataclasses.dataclass(frozen=True)
class Ids:
    """Id sequences of different lengths, one behind the other.

    Attributes:
        flat: Int array of all ids.
        offsets: Int array, one longer than there are sequences: sequence `i`
            is `flat[offsets[i] : offsets[i + 1]]`.
    """

    flat: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def pad(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns sequences `indices`, padded to an int32 `(n, length)`."""
        columns = np.arange(length)
        real = columns < self.lengths[indices][:, None]
        places = np.where(real, self.offsets[indices][:, None] + columns, 0)
        return np.where(real, self.flat[places], PADDING_ID).astype(np.int32)


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """Line-aligned id sequences; each ends in the end symbol."""

    sources: Ids
    targets: Ids

    def __len__(self) -> int:
        return len(self.sources.offsets) - 1


def encode(lines: list[str], model_proto: bytes) -> Ids:
    """Turns sentences into ids that end in the end symbol."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    sequences = processor.encode(lines, add_eos=True)
    lengths = [len(sequence) for sequence in sequences]
    flat = np.fromiter(
        (id_ for sequence in sequences for id_ in sequence),
        np.int32,
        count=sum(lengths),
    )
    return Ids(flat, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


@dataclasses.dataclass(frozen=True)
class Selection:
    """What became of a corpus: pairs kept, and counts of the dropped."""

    kept: Pairs
    empty: int
    too_long: int

    def report(self, name: str) -> str:
        total = len(self.kept) + self.empty + self.too_long
        return (
            f"{name}: {total:,} pairs read, {len(self.kept):,} kept, "
            f"{self.empty:,} empty and {self.too_long:,} too long dropped"
        )


def select(pairs: Pairs, model_proto: bytes, max_length: int):
    """Encodes a corpus, without its empty and over-long pairs.

    Args:
        pairs: The corpus.
        model_proto: Serialized SentencePiece model.
        max_length: Int, most tokens of a side, the end symbol counted.

    Returns:
        The `EncodedPairs` and the `Selection`.

    Raises:
        UserError: If no pair is left.
    """
    blank = np.array(
        [
            not source.strip() or not target.strip()
            for source, target in zip(pairs.sources, pairs.targets, strict=True)
        ],
        bool,
    )
    sides = [
        encode(side, model_proto) for side in (pairs.sources, pairs.targets)
    ]
    lengths = np.maximum(sides[0].lengths, sides[1].lengths)
    too_long = ~blank & (lengths > max_length)
    keep = np.flatnonzero(~blank & ~too_long)
    if not len(keep):
        raise UserError(
            f"no pair of the corpus has text of 1 to {max_length} tokens on "
            f"both sides (--max-length). Received: {len(pairs)} pairs"
        )
    kept = Pairs(
        [pairs.sources[i] for i in keep], [pairs.targets[i] for i in keep]
    )
    selection = Selection(kept, int(blank.sum()), int(too_long.sum()))
    return EncodedPairs(*[take(side, keep) for side in sides]), selection


def take(ids: Ids, indices: np.ndarray) -> Ids:
    lengths = ids.lengths[indices]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    starts = np.repeat(ids.offsets[indices] - offsets[:-1], lengths)
    return Ids(ids.flat[starts + np.arange(offsets[-1])], offsets)
