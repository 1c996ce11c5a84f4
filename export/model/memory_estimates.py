"""How much memory a request may take, from the numbers of the model."""

from collections.abc import Iterable
from typing import NamedTuple

from export.model.document_translation import MAX_DOCUMENT
from export.model.document_translation import MAX_SENTENCES
from export.model.request_splitting import LEAST_POSITIONS
from export.model.request_splitting import MAX_BYTES
from export.model.request_splitting import MAX_NUMBERS
from export.model.request_splitting import MAX_PLACES
from export.model.request_validation import MAX_BEAM_SIZE
from export.model.search import SearchSettings
from keras_transformer.presets import Architecture
from keras_transformer.search.graph_search import ROOM

PAIRS = {"score", "align", "explain"}
FLOAT = 4  # Bytes.
COPIES = 4  # Of what a step computes: before and after an operation or two.
# Of logits and of tokens, by what else a step does with them.
CLOSING, DRAWING = 7, 12
OF_BYTE = 2048  # Of eleven tokens (U+FDFA has 33 bytes in NFKC), on their way.
OF_PART = 256  # Of a text of which every other byte is a sentence, a byte.
OF_PLACE = 40  # Of a token of many hypotheses, on its way to text.


class Sizes(NamedTuple):
    """The numbers that decide.

    Attributes:
        architecture: Of the model.
        vocabulary_size: Int, `V`, of targets.
        sequence_length: Int, at which sources are cut.
        max_bytes: Int, at which texts of either side are cut before.
    """

    architecture: Architecture
    vocabulary_size: int
    sequence_length: int
    max_bytes: int


def memory_bound(
    sizes: Sizes,
    settings: SearchSettings,
    signatures: Iterable[str],
    rows: int = 1000,
) -> int:
    """Returns bytes that a request takes at most, beside the weights.

    What is computed at a time is bounded by the budgets of `chunks`: the most
    that `search_bytes` finds for any length of the rows and any beam size, and

        4 copies · max(MAX_NUMBERS, numbers of the longest pair) · 4 bytes

    for questions about pairs. Before it texts become tokens, and behind it
    tokens text, the best of many beams `MAX_PLACES` at most:

        2048 · max(MAX_BYTES, max_bytes)        40 · MAX_PLACES

    Beside it stand texts and answers of all rows:

        rows · (2 · max_bytes + 64 · (sequence_length + longest translation))

    A text of many sentences has `MAX_SENTENCES` such rows at a time, and parts:

        256 · MAX_DOCUMENT

    Args:
        sizes: Of the model.
        settings: How it searches.
        signatures: Names of those that are served.
        rows: Int, those of the request.
    """
    signatures = set(signatures)
    length = sizes.sequence_length
    longest = length + settings.max_extra_length
    beams = {1, settings.beam_size}
    total = OF_BYTE * max(MAX_BYTES, sizes.max_bytes)
    if "translate_document" in signatures:
        rows += MAX_SENTENCES
        total += OF_PART * MAX_DOCUMENT
    total += rows * (2 * sizes.max_bytes + 64 * (length + longest))
    if "translate_nbest" in signatures:
        beams.add(MAX_BEAM_SIZE)
        total += OF_PLACE * MAX_PLACES
    ways = [(count, COPIES) for count in beams]
    if "translate_constrained" in signatures or settings.no_repeat_ngram:
        ways = [(count, CLOSING) for count in beams]
    if "sample" in signatures:
        ways.append((1, DRAWING))
    computed = max(
        search_bytes(sizes, settings, count, source, copies)
        for count, copies in ways
        for source in range(1, length + 1)
    )
    if signatures & PAIRS:
        computed = max(computed, pair_bytes(sizes))
    return total + computed


def search_bytes(
    sizes: Sizes,
    settings: SearchSettings,
    beams: int,
    source: int,
    copies: int = COPIES,
) -> int:
    """Returns bytes that searching a chunk of equal rows takes.

    With `R` rows of `K` beams, as many as the budget holds, sources of `S` and
    translations of `T` tokens, `T` rounded up to `ROOM`, these are the numbers
    of four bytes, each in a few copies, with `N` layers of the decoder:

        caches of the decoder       4 · N · H · (d_k + d_v) · R · K · T
        keys, values of sources     3 · N · H · (d_k + d_v) · R · S
        attention to translations   4 · R · K · H · T · K
        attention of the encoder    4 · R · H · S · S
        inside the feed-forward     2 · R · max(S, K) · d_ff
        logits                 copies · R · K · V
        tokens of hypotheses   copies · R · K · T · 4

    With a recurrence in the place of self-attention, there is neither its
    cache nor its attention, but a state of `4 · N · D · R · K`.

    Args:
        sizes: Of the model.
        settings: How it searches.
        beams: Int, `K`.
        source: Int, `S`.
        copies: Int: `COPIES`, or `CLOSING` with `no_repeat_ngram`, or
            `DRAWING`.
    """
    a = sizes.architecture
    target = source + settings.max_extra_length
    positions = max(source + target, LEAST_POSITIONS)
    if settings.beam_size < beams and beams * positions > settings.budget:
        return 0  # Refused.
    rows = max(1, settings.budget // (beams * positions))
    room = -(-target // ROOM) * ROOM
    heads, layers = a.num_heads, a.layers_of_decoder
    features = layers * heads * (a.key_dim + a.value_dim)
    if a.decoder_mixer == "ssru":
        of_past = COPIES * beams * layers * a.hidden_dim
    else:
        of_past = COPIES * (features + heads * beams) * beams * room
    of_encoder = rows * (
        COPIES * heads * source**2 + 2 * source * a.intermediate_dim
    )
    of_step = (
        of_past
        + 3 * features * source
        + COPIES * beams * heads * source
        + copies * beams * sizes.vocabulary_size
        + 2 * beams * a.intermediate_dim
        + 4 * copies * beams * room
    )
    return FLOAT * max(
        of_encoder + 3 * features * rows * source, rows * of_step
    )


def pair_bytes(sizes: Sizes) -> int:
    """Returns bytes that questions about given pairs take."""
    a, length = sizes.architecture, sizes.sequence_length
    maps = (a.num_layers + 2 * a.layers_of_decoder) * a.num_heads
    numbers = maps * length**2 + sizes.vocabulary_size * length
    return COPIES * FLOAT * max(MAX_NUMBERS, numbers)
