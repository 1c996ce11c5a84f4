"""Encodes several variants of each training pair: augmented, or resampled.

The variants of a pair are drawn once and kept with the encoded corpus; a
`BatchPlan` takes another one each time that the pair occurs. So the batches
stay a pure function of the seed.
"""

import dataclasses

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from command_line.errors import UserError
from command_line.options import fraction, option, positive
from train.data import augmentation, subword_sampling
from train.data.augmentation import augment
from train.data.corpus import SIDES
from train.data.subword_sampling import SubwordSampler
from train.data.tokenizer_file import PIECE

BOTH = "both"
DEFAULT_VARIANTS = 8


@dataclasses.dataclass(frozen=True)
class VariantOptions:
    """Variants of each training pair; the validation set stays as it is."""

    augment: bool = option(
        False,
        "change training pairs: upper case in "
        f"{augmentation.UPPER_CASE * 100:.0f}%%, title case in "
        f"{augmentation.TITLE_CASE * 100:.0f}%%, typing errors in the source "
        f"in {augmentation.TYPING_ERRORS * 100:.0f}%%, no final punctuation in "
        f"{augmentation.NO_FINAL_PUNCTUATION * 100:.0f}%%",
    )
    subword_sampling: float | None = option(
        None,
        "split training text into random subwords: the share of merges that "
        "are left out (BPE-dropout), or of a unigram vocabulary the exponent "
        "of a split's probability (default: off; 0.1 is usual)",
        kind=fraction,
        metavar="P",
    )
    subword_sampling_sides: str | None = option(
        None, f"sides with --subword-sampling (default: {BOTH})", choices=[*SIDES, BOTH]
    )
    variants: int | None = option(
        None,
        "variants of a pair with --augment or --subword-sampling; passes over "
        f"the corpus take them in turn (default: {DEFAULT_VARIANTS})",
        kind=positive(int),
        metavar="N",
    )

    def resolve(self) -> "VariantOptions":
        """Fills in defaults of options that are in use.

        Raises:
            UserError: If an option needs another one that is missing.
        """
        sampling, sides = self.subword_sampling, self.subword_sampling_sides
        if sides and not sampling:
            raise UserError(
                "--subword-sampling-sides needs --subword-sampling P. "
                f"Received: --subword-sampling-sides {sides} alone"
            )
        used = self.augment or sampling
        if self.variants and not used:
            raise UserError(
                "--variants needs --augment or --subword-sampling P. "
                f"Received: --variants {self.variants} alone"
            )
        return dataclasses.replace(
            self,
            subword_sampling_sides=sides or (BOTH if sampling else None),
            variants=self.variants or (DEFAULT_VARIANTS if used else None),
        )

    def key(self, seed: int) -> list:
        """Returns what encoded text depends on, as JSON; empty if unused."""
        if not self.variants:
            return []
        values = list(dataclasses.asdict(self).items())
        versions = augmentation.VERSION, subword_sampling.VERSION
        return [values, seed, *versions]


class VariantEncoder:
    """Encodes the variants of pairs; may be called from several threads.

    Args:
        options: The options, after `resolve`.
        seed: Int, seed of the variants.
        protos: SentencePiece models of sources and of targets.
        max_length: Int, most tokens of a side. A variant with an empty or a
            longer side is replaced by the pair as it is.
        may_split_words: Bool, whether typing errors insert blanks. With links
            between words they must not: after a blank that was lost and one
            that was inserted, the words would seem to be the same.
    """

    def __init__(
        self,
        options: VariantOptions,
        seed: int,
        protos: tuple[bytes, bytes],
        max_length: int,
        may_split_words: bool = True,
    ):
        self._may_split_words = may_split_words
        self.count = options.variants
        self._augment = options.augment
        self._seed = seed
        share = options.subword_sampling
        self._samplers = [
            SubwordSampler(proto, share, seed)
            if options.subword_sampling_sides in (side, BOTH)
            else None
            for side, proto in zip(SIDES, protos, strict=True)
        ]
        self._processors = [
            sentencepiece.SentencePieceProcessor(model_proto=proto) for proto in protos
        ]
        symbols = set().union(*map(find_symbols, protos))
        self._symbols = augmentation.compile_symbols(symbols)
        self._max_length = max_length

    def __call__(
        self,
        numbers: list[int],
        pairs: list[tuple[str, str]],
        sequences: list[list[list[int]]],
    ) -> list[list[list[int]]]:
        """Returns the ids of all variants, those of a pair in a row.

        Args:
            numbers: The numbers of `n` successive kept pairs in the corpus.
            pairs: Their text.
            sequences: Their ids, `n` of each side.

        Returns:
            Lists of ids of sources and of targets, `n * count` each.
        """
        found = [[[] for _ in range(len(pairs) * self.count)] for _ in SIDES]
        for variant in range(self.count if pairs else 0):
            texts = pairs
            if self._augment:
                texts = [
                    augment(
                        pair,
                        f"{self._seed} {n} {variant}",
                        self._symbols,
                        self._may_split_words,
                    )
                    for n, pair in zip(numbers, pairs, strict=True)
                ]
            sides = [
                self._encode(
                    side, [pair[side] for pair in texts], (numbers[0], variant)
                )
                or sequences[side]
                for side in range(len(SIDES))
            ]
            for i, ids in enumerate(zip(*sides, strict=True)):
                lengths = sorted(map(len, ids))
                if lengths[0] < 2 or lengths[1] > self._max_length:
                    ids = [side[i] for side in sequences]
                for into, row in zip(found, ids, strict=True):
                    into[i * self.count + variant] = row
        return found

    def _encode(
        self, side: int, lines: list[str], name: tuple[int, int]
    ) -> list[list[int]] | None:
        """Encodes lines; `None` if they are those without variants."""
        if self._samplers[side]:
            return self._samplers[side](lines, side, *name)
        if self._augment:
            processor = self._processors[side]
            return processor.encode(lines, add_eos=True, num_threads=1)
        return None


def find_symbols(proto: bytes) -> set[str]:
    """Returns the texts that a model never splits."""
    model = sentencepiece_model_pb2.ModelProto.FromString(proto)
    pieces = [p.piece for p in model.pieces if p.type == PIECE.USER_DEFINED]
    return {piece.replace("▁", " ").strip() for piece in pieces}
