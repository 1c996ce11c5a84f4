"""Splits text into random subwords: BPE-dropout, subword regularization.

SentencePiece has both, but a seed of its generator gives other splits in each
process. Here a split is a function of the seed, also after a restart.
"""

import functools
import itertools
import math
import random
import re
from collections.abc import Iterator

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError
from keras_transformer.masks import EOS_ID
from keras_transformer.tokenizer import UNKNOWN_ID
from train.data.augmentation import compile_symbols
from train.data.tokenizer_file import KINDS, PIECE, TRAINER, UNKNOWN_PENALTY

SPLITS = 64  # Most different splits of a word.
CACHED = 1 << 19  # Most splits of words in memory.
VERSION = 1  # Encoded text depends on the rules and random numbers here.


class SubwordSampler:
    """Splits text at random; may be called from several threads.

    A text is normalized and cut at symbols and blanks, as by SentencePiece.
    Each word that is left is then split at random:

    * BPE-dropout (Provilkov et al., 2020, Algorithm 1). At each step each
      possible merge is left out with probability `share`; of the others the
      best one is applied, until none is left.
    * Of a unigram model (Kudo, 2018), a split is drawn from all splits, in
      proportion to its probability to the power of `share`.

    Args:
        proto: Serialized SentencePiece model, bpe or unigram.
        share: Float, see above.
        seed: Int, seed of the splits.

    Raises:
        UserError: If the model is of another type.
    """

    def __init__(self, proto: bytes, share: float, seed: int):
        model = sentencepiece_model_pb2.ModelProto.FromString(proto)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        type_ = model.trainer_spec.model_type
        if type_ not in KINDS:
            raise UserError(
                "--subword-sampling needs a vocabulary of type bpe or unigram. "
                f"Received: one of type {TRAINER.ModelType.Name(type_).lower()}"
            )
        self._share = share
        self._seed = seed
        normal = [
            (id_, piece)
            for id_, piece in enumerate(model.pieces)
            if piece.type == PIECE.NORMAL
        ]
        self._ids = {piece.piece: id_ for id_, piece in normal}
        self._scores = {piece.piece: piece.score for _, piece in normal}
        self._longest = max(map(len, self._ids), default=1)
        self._unknown = min(self._scores.values(), default=0.0)
        self._unknown -= UNKNOWN_PENALTY
        symbols = {
            piece.piece: id_
            for id_, piece in enumerate(model.pieces)
            if piece.type == PIECE.USER_DEFINED
        }
        self._ids_of_symbols = symbols
        self._symbols = compile_symbols(symbols)
        self._bytes = None
        if model.trainer_spec.byte_fallback:
            names = [f"<0x{byte:02X}>" for byte in range(256)]
            self._bytes = self._processor.piece_to_id(names)
        # Pieces of some models contain blanks; then a text is one word.
        crosses = any("▁" in piece[1:] for piece in self._ids)
        self._word = re.compile(".+" if crosses else "▁?[^▁]+|▁", re.DOTALL)
        is_bpe = type_ == TRAINER.BPE
        split = self._drop_merges if is_bpe else self._draw_split
        self._sample = functools.lru_cache(CACHED)(
            functools.partial(self._split_word, split)
        )

    def __call__(self, lines: list[str], *name: int) -> list[list[int]]:
        """Encodes lines; each ends in EOS.

        Args:
            lines: Text.
            *name: Ints at least 0; they and the seed decide the splits.
        """
        words = [list(self._cut(text)) for text in self._processor.normalize(lines)]
        generator = np.random.default_rng((self._seed % 2**32, *name))
        numbers = generator.integers(SPLITS, size=sum(map(len, words)))
        numbers = iter(numbers.tolist())
        return [
            self._join([self._sample(word, next(numbers)) for word in each])
            for each in words
        ]

    def _cut(self, text: str) -> Iterator[str]:
        """Yields the symbols and the words of a normalized text."""
        parts = self._symbols.split(text) if self._symbols else [text]
        for number, part in enumerate(parts):
            if number % 2:
                yield part
            else:
                yield from self._word.findall(part)

    def _split_word(self, split, word: str, number: int) -> tuple[int, ...]:
        """Returns the ids of one of a word's random splits."""
        if word in self._ids_of_symbols:
            return (self._ids_of_symbols[word],)
        generator = random.Random(f"{self._seed} {number} {word}")
        return tuple(itertools.chain(*map(self._ids_of, split(word, generator))))

    def _ids_of(self, piece: str) -> list[int]:
        if piece in self._ids:
            return [self._ids[piece]]
        if self._bytes is None:
            return [UNKNOWN_ID]
        return [self._bytes[byte] for byte in piece.encode()]

    def _join(self, parts: list[tuple[int, ...]]) -> list[int]:
        ids = list(itertools.chain(*parts))
        if self._bytes is None:  # Successive unknown pieces are one.
            ids = [
                id_
                for before, id_ in zip([None, *ids], ids, strict=False)
                if not before == id_ == UNKNOWN_ID
            ]
        return [*ids, EOS_ID]

    def _drop_merges(self, word: str, generator: random.Random) -> list[str]:
        """Splits a word by BPE-dropout."""
        pieces = list(word)
        while True:
            merges = [
                (score, -place)
                for place, pair in enumerate(itertools.pairwise(pieces))
                if (score := self._scores.get(pair[0] + pair[1])) is not None
                and generator.random() >= self._share
            ]
            if not merges:
                return pieces
            place = -max(merges)[1]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]

    def _draw_split(self, word: str, generator: random.Random) -> list[str]:
        """Splits a word by a unigram model: forward sums, backward draws."""
        sums = [0.0]
        # For each end of a piece, its begin and the logarithm of its weight.
        arcs = [[]]
        for end in range(1, len(word) + 1):
            arcs.append([])
            for begin in range(max(0, end - self._longest), end):
                score = self._scores.get(word[begin:end])
                if score is None and end - begin == 1:
                    score = self._unknown
                if score is not None:
                    arc = begin, sums[begin] + self._share * score
                    arcs[end].append(arc)
            top = max(weight for _, weight in arcs[end])
            total = sum(math.exp(weight - top) for _, weight in arcs[end])
            sums.append(top + math.log(total))
        pieces, end = [], len(word)
        while end:
            begins, weights = zip(*arcs[end], strict=True)
            weights = [math.exp(weight - sums[end]) for weight in weights]
            (begin,) = generator.choices(begins, weights)
            pieces.append(word[begin:end])
            end = begin
        return pieces[::-1]
