"""Options of beam search (Vaswani et al., 2017, Section 6.1)."""

import dataclasses
import numbers
from typing import Any

from keras import ops

from keras_transformer.argument_checks import check_search_int
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID

IMPOSSIBLE = -float("inf")  # The logarithm of probability 0.


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """Options of beam search over any model.

    Attributes:
        beam_size: Positive int, `K` (4 in the paper). 1 is greedy search.
            `run_search_loop` also takes an int32 scalar tensor.
        length_penalty: Float, or float32 tensor, a scalar or `(B,)`: `α`
            (0.6 in the paper).
        num_hypotheses: Positive int, `N`, at most `beam_size`: the number of
            hypotheses to return; the search stops as soon as these are
            certain. `None` means `beam_size`. It may be a tensor if
            `beam_size` may.
        forbidden_ids: Tuple of ints that are never chosen, unless they are
            part of a prefix. Their probability is not redistributed. `None`
            means `padding_id` and `bos_id`, except one that is `eos_id`.
        bos_id: Int, the first input token of the decoder.
        eos_id: Int, the last token of a hypothesis.
        padding_id: Int, the id after `eos_id`.
        penalty_offset: Number, `k` of the penalty `((k + n) / (k + 1)) ** α`
            for `n` tokens: 5 in Wu et al. (2016); 0 makes it the `n ** α` of
            Marian and Hugging Face.
        no_repeat_ngram: Int, or int32 tensor `(B,)`: length of the n-grams
            that a hypothesis may not repeat. 0 means no limit.
        min_length: Int, or int32 tensor `(B,)`: minimum number of tokens
            before EOS, within the length limit. 0 means no minimum.
        unscored_prefix: Int, number of the first tokens of a prefix whose
            log-probabilities do not count: 1 is as `forced_bos_token_id` of
            Hugging Face. Lengths include them.

    Raises:
        ValueError: If one of the sizes is a float or too low, or
            `num_hypotheses` exceeds `beam_size`.
    """

    beam_size: Any = 4
    length_penalty: Any = 0.6
    num_hypotheses: Any = None
    forbidden_ids: tuple[int, ...] | None = None
    bos_id: int = BOS_ID
    eos_id: int = EOS_ID
    padding_id: int = PADDING_ID
    penalty_offset: float = 5
    no_repeat_ngram: Any = 0
    min_length: Any = 0
    unscored_prefix: int = 0

    def __post_init__(self):
        for name in ("beam_size", "num_hypotheses"):
            check_search_int(name, getattr(self, name), minimum=1)
        for name in ("no_repeat_ngram", "min_length"):
            check_search_int(name, getattr(self, name))
        sizes = self.num_hypotheses, self.beam_size
        are_known = all(isinstance(x, numbers.Integral) for x in sizes)
        if are_known and sizes[0] > sizes[1]:
            raise ValueError(
                "`num_hypotheses` must be at most `beam_size`. Received: "
                f"num_hypotheses={self.num_hypotheses}, "
                f"beam_size={self.beam_size}"
            )

    @property
    def num_returned(self):
        """`N`, also if `num_hypotheses` is `None`."""
        if self.num_hypotheses is None:
            return self.beam_size
        return self.num_hypotheses

    @property
    def num_candidates(self):
        """Number of candidates of a sentence in each step.

        The best `2 K` contain `K` active ones, since each beam has only one
        continuation by EOS. Greedy search needs only the best candidate.
        """
        if isinstance(self.beam_size, numbers.Integral):
            return 1 if self.beam_size == 1 else 2 * self.beam_size
        greedy = ops.equal(self.beam_size, 1)
        return ops.where(greedy, 1, 2 * self.beam_size)

    @property
    def never_chosen(self):
        """The forbidden ids, also if `forbidden_ids` is `None`."""
        if self.forbidden_ids is None:
            ids = (self.padding_id, self.bos_id)
            return tuple(i for i in ids if i != self.eos_id)
        return self.forbidden_ids


def length_penalty_of(length, length_penalty, offset=5):
    """Returns `((5 + length) / 6) ** length_penalty` (Wu et al., 2016, eq. 14).

    Args:
        length: Int or int tensor, number of tokens with EOS.
        length_penalty: Float or float32 tensor that broadcasts with it: `α`.
        offset: Number, replaces 5, and `offset + 1` replaces 6.

    Returns:
        Float32 tensor, the divisor of a log-probability.

    Example:
        >>> length_penalty_of(7, 1.0)
        2.0
    """
    length = ops.cast(length, "float32")
    return ops.power((offset + length) / (offset + 1.0), length_penalty)
