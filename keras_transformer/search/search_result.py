"""The result of a search (Section 6.1)."""

from typing import Any, NamedTuple


class Hypotheses(NamedTuple):
    """The best translations of each sentence, best first.

    An unused slot has score -inf and length 0.
    """

    ids: Any
    """Int32 `(B, N, L)`, with EOS, then padding."""
    scores: Any
    """Float32 `(B, N)`: log-probability over length penalty."""
    lengths: Any
    """Int32 `(B, N)`, tokens including EOS."""
    truncated: Any
    """Bool `(B, N)`: ended by the limit, not by the model's first choice."""
