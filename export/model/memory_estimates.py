"""Upper bounds of a request's memory, from the sizes of the model."""

from collections.abc import Iterable
from typing import NamedTuple

from export.model.document_translation import MAX_DOCUMENT, SENTENCES_PER_BATCH
from export.model.request_splitting import (
    MAX_BEAM_POSITIONS,
    MAX_CHUNK_BYTES,
    MAX_NUMBERS,
    MIN_POSITIONS_PER_SENTENCE,
)
from export.model.request_validation import MAX_BEAM_SIZE
from export.model.search import SearchSettings
from keras_transformer.presets import Architecture
from keras_transformer.search.tensorflow.search_loop import STEPS_PER_ROUND

FORCED_SIGNATURES = {"score", "align", "explain"}
FLOAT_BYTES = 4
COPIES = 4  # Copies of the tensors of a step: before and after some operations.
# Copies of logits and tokens, by the kind of search.
NGRAM_COPIES, SAMPLING_COPIES = 7, 12
BYTES_PER_TEXT_BYTE = 2048  # Eleven tokens (U+FDFA has 33 bytes in NFKC).
# Of a text in which every other byte is a sentence.
BYTES_PER_DOCUMENT_BYTE = 256
BYTES_PER_OUTPUT_TOKEN = 40  # In the detokenizer, of many hypotheses.


class ModelSizes(NamedTuple):
    """The sizes that determine memory.

    Attributes:
        architecture: Architecture of the model.
        vocabulary_size: Int, `V`, of targets.
        sequence_length: Int, maximum tokens of a source.
        max_bytes: Int, maximum bytes of a text on either side.
    """

    architecture: Architecture
    vocabulary_size: int
    sequence_length: int
    max_bytes: int


def memory_bound(
    sizes: ModelSizes,
    settings: SearchSettings,
    signatures: Iterable[str],
    rows: int = 1000,
) -> int:
    """Returns an upper bound of a request's memory in bytes, without weights.

    The budgets of `request_splitting` bound each computation: by the maximum of
    `search_bytes` over all lengths and beam sizes, and by

        4 copies · max(MAX_NUMBERS, numbers of the longest pair) · 4 bytes

    for given pairs. Tokenization and detokenization (of at most
    `MAX_BEAM_POSITIONS` tokens) take:

        2048 · max(MAX_CHUNK_BYTES, max_bytes)        40 · MAX_BEAM_POSITIONS

    Texts and outputs of all sentences take:

        rows · (2 · max_bytes + 64 · (sequence_length + longest translation))

    A document has `SENTENCES_PER_BATCH` such sentences at a time, and parts:

        256 · MAX_DOCUMENT

    Args:
        sizes: Sizes of the model.
        settings: Settings of the search.
        signatures: Names of the exported signatures.
        rows: Int, number of sentences of the request.
    """
    signatures = set(signatures)
    length = sizes.sequence_length
    longest = length + settings.max_extra_length
    beams = {1, settings.beam_size}
    total = BYTES_PER_TEXT_BYTE * max(MAX_CHUNK_BYTES, sizes.max_bytes)
    if "translate_document" in signatures:
        rows += SENTENCES_PER_BATCH
        total += BYTES_PER_DOCUMENT_BYTE * MAX_DOCUMENT
    total += rows * (2 * sizes.max_bytes + 64 * (length + longest))
    if "translate_nbest" in signatures:
        beams.add(MAX_BEAM_SIZE)
        total += BYTES_PER_OUTPUT_TOKEN * MAX_BEAM_POSITIONS
    searches = [(count, COPIES) for count in beams]
    ruled = settings.no_repeat_ngram or settings.constrain_trees
    if "translate_constrained" in signatures or ruled:
        searches = [(count, NGRAM_COPIES) for count in beams]
    if "sample" in signatures:
        searches.append((1, SAMPLING_COPIES))
    computed = max(
        search_bytes(sizes, settings, count, source, copies)
        for count, copies in searches
        for source in range(1, length + 1)
    )
    if signatures & FORCED_SIGNATURES:
        computed = max(computed, pair_bytes(sizes))
    return total + computed


def search_bytes(
    sizes: ModelSizes,
    settings: SearchSettings,
    beams: int,
    source: int,
    copies: int = COPIES,
) -> int:
    """Returns the bytes of a search over a chunk of sentences of equal length.

    For `R` sentences of `K` beams, as many as fit in the budget, sources of `S`
    and translations of `T` tokens, `T` rounded up to `STEPS_PER_ROUND`, and `N`
    layers of the decoder, these are the numbers of four bytes, in some copies:

        caches of the decoder       4 · N · H · (d_k + d_v) · R · K · T
        keys, values of sources     3 · N · H · (d_k + d_v) · R · S
        attention to translations   4 · R · K · H · T · K
        attention of the encoder    4 · R · H · S · S
        inside the feed-forward     2 · R · max(S, K) · d_ff
        logits                 copies · R · K · V
        tokens of hypotheses   copies · R · K · T · 4

    A recurrence instead of self-attention has neither that cache nor these
    weights, but a state of `4 · N · D · R · K`.

    Args:
        sizes: Sizes of the model.
        settings: Settings of the search.
        beams: Int, `K`.
        source: Int, `S`.
        copies: Int: `COPIES`, or `NGRAM_COPIES` with constraints, or
            `SAMPLING_COPIES`.
    """
    a = sizes.architecture
    target = source + settings.max_extra_length
    positions = max(source + target, MIN_POSITIONS_PER_SENTENCE)
    if settings.beam_size < beams and beams * positions > settings.budget:
        return 0  # Such beam sizes are refused.
    rows = max(1, settings.budget // (beams * positions))
    capacity = -(-target // STEPS_PER_ROUND) * STEPS_PER_ROUND
    heads, layers = a.num_heads, a.num_decoder_layers
    features = layers * heads * (a.key_dim + a.value_dim)
    if a.decoder_mixer == "ssru":
        of_cache = COPIES * beams * layers * a.hidden_dim
    else:
        of_cache = COPIES * (features + heads * beams) * beams * capacity
    of_encoder = rows * (COPIES * heads * source**2 + 2 * source * a.intermediate_dim)
    of_step = (
        of_cache
        + 3 * features * source
        + COPIES * beams * heads * source
        + copies * beams * sizes.vocabulary_size
        + 2 * beams * a.intermediate_dim
        + 4 * copies * beams * capacity
    )
    return FLOAT_BYTES * max(of_encoder + 3 * features * rows * source, rows * of_step)


def pair_bytes(sizes: ModelSizes) -> int:
    """Returns the bytes of forced decoding of given pairs."""
    a, length = sizes.architecture, sizes.sequence_length
    maps = (a.num_layers + 2 * a.num_decoder_layers) * a.num_heads
    numbers = maps * length**2 + sizes.vocabulary_size * length
    return COPIES * FLOAT_BYTES * max(MAX_NUMBERS, numbers)
