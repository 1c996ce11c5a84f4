"""Reference beam search in Python, and tables of logits to search.

The searches are in plain Python and float64, from the docstring of
`beam_search`. A table, `(L, V, V)`, is a model whose next token depends on the
position and on the last token.
"""

import functools
import itertools

import hypothesis
import numpy as np
from hypothesis import strategies as st
from keras import ops

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.sampling import Sampling, sample
from keras_transformer.special_ids import (
    BOS_ID as BEGIN,
    EOS_ID as END,
    PADDING_ID as PADDING,
)
from tests.helpers.oracles.numpy_oracles import log_softmax

FORBIDDEN_IDS = (PADDING, BEGIN)

# Reproducible; a search is slow when the machine is busy.
settings = functools.partial(hypothesis.settings, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32 - 1)
# How sure the model is: nearly uniform, ordinary, nearly deterministic.
spreads = st.sampled_from([0.3, 1.0, 3.0, 10.0])
alphas = st.floats(-1.0, 2.0, width=32)


def random_tables(seed, spread, shape):
    """Float32 logits with, here and there, a token that cannot follow."""
    rng = np.random.default_rng(seed)
    tables = spread * rng.normal(size=shape)
    impossible = rng.random(shape) < 0.05
    impossible[..., END] = False
    return np.where(impossible, -np.inf, tables).astype("float32")


def penalty(length, alpha=0.6):
    return ((5 + length) / 6) ** float(alpha)


def score(log_probabilities, ids, alpha):
    """Normalized log-probability of a sequence that ends in `END`."""
    before = (BEGIN, *ids)
    total = sum(
        log_probabilities[index, before[index], token]
        for index, token in enumerate(ids)
    )
    return total / penalty(len(ids), alpha)


def every_sequence(vocabulary_size, limit, never=FORBIDDEN_IDS):
    others = set(range(vocabulary_size)) - {END, *never}
    for length in range(1, limit + 1):
        for body in itertools.product(sorted(others), repeat=length - 1):
            yield (*body, END)


def exhaustive_search(table, limit, alpha, never=FORBIDDEN_IDS):
    """Returns `(score, ids)` of each possible sequence, best first."""
    log_probabilities = log_softmax(table)
    found = [
        (score(log_probabilities, ids, alpha), ids)
        for ids in every_sequence(table.shape[-1], limit, never)
    ]
    return sorted((f for f in found if f[0] > -np.inf), reverse=True)


def repeats(ids, size):
    """Returns whether the last `size` tokens occurred before."""
    grams = [ids[i : i + size] for i in range(len(ids) - size + 1)]
    return bool(size and grams) and grams[-1] in grams[:-1]


def allowed_tokens(ids, row, limit, size=0, least=0):
    """Returns the tokens that may follow `ids`, as `SearchOptions` documents.

    `row` is -inf where the model lets no token follow, `size` is `no_repeat_ngram`
    and `least` is `min_length`.
    """
    if len(ids) + 1 == limit:
        return [END]
    tokens = [
        token
        for token in range(len(row))
        if token not in FORBIDDEN_IDS
        and row[token] > -np.inf
        and not repeats((*ids, token), size)
        and (token != END or len(ids) >= least)
    ]
    return tokens or [END]


def plain_beam_search(
    table, beam_size, limit, alpha, num_hypotheses, prefix=(), **rules
):
    """Beam search that continues to the limit, whatever it has found.

    Returns `(score, ids)` of each finished hypothesis, best first; the number of
    steps after which the bound of the docstring ends the search; and how near a
    choice or a stop came to the other outcome.
    """
    log_probabilities = log_softmax(table)
    live, finished, needed, gap = [((), 0.0)], [], None, np.inf
    for index in range(limit):
        choices = [
            ((*ids, token), total + row[token])
            for ids, total in live
            for row in [log_probabilities[index, ids[-1] if ids else BEGIN]]
            for token in prefix[index : index + 1]
            or allowed_tokens(ids, row, limit, **rules)
        ]
        choices = [c for c in choices if c[1] > -np.inf]
        choices.sort(key=lambda choice: -choice[1])
        # With one beam, the first choice alone: greedy search.
        count = 2 * beam_size if beam_size > 1 else 1
        going_on = [c for c in choices[:count] if c[0][-1] != END]
        for ranked, size in ((choices, count), (going_on, beam_size)):
            if len(ranked) > size:
                gap = min(gap, ranked[size - 1][1] - ranked[size][1])
        live = going_on[:beam_size]
        finished += [
            (total / penalty(len(ids), alpha), ids)
            for ids, total in choices[:count]
            if ids[-1] == END
        ]
        finished.sort(reverse=True)
        ahead = index + 2 if alpha < 0 else limit
        hope = live[0][1] / penalty(ahead, alpha) if live else -np.inf
        worst = [*[s for s, _ in finished], *[-np.inf] * num_hypotheses][
            num_hypotheses - 1
        ]
        if needed is None:
            if hope > -np.inf:
                gap = min(gap, abs(hope - worst))
            if hope <= worst:
                needed = index + 1
    return finished, needed, gap


def search_by_hash(search, arrays, beam_size, **rules):
    """Searches with a model that sees all tokens so far, on any backend.

    Their hash takes the place of the position in `arrays["tables"]`, `(B, L, V, V)`;
    `arrays` also has `"length_penalty"`, `"max_lengths"` and `"prefix_ids"`.
    """
    batch, length, size, _ = arrays["tables"].shape
    flat_tables = ops.reshape(arrays["tables"], [-1, size])

    def next_step(ids, index, state, sentences):
        hashes, steps = state
        hashes = (3 * hashes + ids * (steps + 1)) % length
        rows = ops.repeat(sentences, beam_size) * length + hashes
        logits = ops.take(flat_tables, rows * size + ids, axis=0)
        return logits, (hashes, steps + 1)

    hashes = ops.zeros(batch * beam_size, "int32")
    return search(
        next_step,
        (hashes, ops.convert_to_tensor(0, "int32")),
        SearchOptions(beam_size, arrays["length_penalty"], **rules),
        arrays["max_lengths"],
        arrays["prefix_ids"],
        constants=(ops.arange(batch, dtype="int32"),),
    )


def search_modes(search):
    """Returns functions that search arrays of `search_by_hash`, by name."""

    def draw(next_step, state, options, limits, prefix_ids, constants):
        rows = ops.arange(len(limits), dtype="int32")
        how = Sampling(rows, temperature=0.7, top_k=4, top_p=0.9)
        return sample(next_step, state, options, limits, how, prefix_ids, constants, 8)

    find = functools.partial(search_by_hash, search)
    return {
        "greedy": functools.partial(find, beam_size=1),
        "beams": functools.partial(find, beam_size=4),
        "rules": functools.partial(find, beam_size=4, no_repeat_ngram=2, min_length=3),
        "draws": functools.partial(search_by_hash, draw, beam_size=1),
    }


def sentence(hypotheses, index):
    return type(hypotheses)(*[x[index] for x in hypotheses])


def check_sentence(found, table, limit, alpha, expected_scores):
    """Checks all that is returned for one sentence.

    Each hypothesis is read and scored anew, so equal scores at each rank mean
    equal hypotheses up to ties, which rounding may swap. The tolerance is
    absolute, too: float32 logits of 30 leave no better log-probability.
    """
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    log_probabilities = log_softmax(table)
    filled = min(len(expected_scores), len(found.scores))
    seen = set()
    for rank in range(filled):
        length = int(found.lengths[rank])
        ids = tuple(int(i) for i in found.ids[rank, :length])
        assert 1 <= length <= limit
        assert ids.index(END) == length - 1
        assert not set(ids) & set(FORBIDDEN_IDS)
        assert not found.ids[rank, length:].any()
        assert ids not in seen
        seen.add(ids)
        actual = score(log_probabilities, ids, alpha)
        close(found.scores[rank], actual)
        close(actual, expected_scores[rank])
        last = (BEGIN, *ids)[length - 1]
        allowed = table[length - 1, last].copy()
        allowed[list(FORBIDDEN_IDS)] = -np.inf
        at_limit = length == limit
        assert found.truncated[rank] == (at_limit and allowed.argmax() != END)
    check_fillers(sentence(found, slice(filled, None)))


def check_fillers(found):
    np.testing.assert_array_equal(found.scores, -np.inf)
    np.testing.assert_array_equal(found.ids, PADDING)
    np.testing.assert_array_equal(found.lengths, 0)
    np.testing.assert_array_equal(found.truncated, False)


def check_equal(found, expected, atol=0):
    """Equal, but for trailing padding and the last bits of the scores."""
    width = min(found.ids.shape[-1], expected.ids.shape[-1])
    np.testing.assert_array_equal(found.ids[..., :width], expected.ids[..., :width])
    assert not found.ids[..., width:].any()
    assert not expected.ids[..., width:].any()
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_array_equal(found.truncated, expected.truncated)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6, atol=atol)
