import functools

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from export.model.beam_trace import trace_beam_search
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_transformer import (
    GraphTransformer,
    search_in_graph,
)
from tests.helpers.oracles.graph_searches import (
    StepModel,
    make_model,
    random_batch,
    run_search,
    table_step,
)
from tests.helpers.oracles.reference_searches import (
    BEGIN,
    END,
    FORBIDDEN_IDS,
    alphas,
    check_equal,
    log_softmax,
    random_tables,
    seeds,
    sentence,
    settings,
    spreads,
)


@functools.cache
def compiled_trace():
    """One graph for all batches, as that of `run_search`."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, None, None], tf.float32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def search(tables, beam_size, length_penalty, max_lengths):
        next_step, state = table_step(tables, beam_size)
        options = SearchOptions(beam_size, length_penalty)
        model = StepModel(next_step, state, (), beam_size)
        return trace_beam_search(model, options, max_lengths)

    return search


def run_trace(tables, beam_size, alpha, limits):
    found = compiled_trace()(
        tables, np.int32(beam_size), np.float32(alpha), np.int32(limits)
    )
    return tf.nest.map_structure(lambda x: x.numpy(), found)


def candidates_of(trace, step):
    """Returns `(parent, id, log-probability, kept)` of those that exist."""
    exists = trace.log_probabilities[step] > -np.inf
    columns = [column[step][exists].tolist() for column in trace]
    return list(zip(*columns, strict=True))


def check_steps(trace, table, beam_size, limit):
    """Compares each step with all continuations, in plain Python."""
    log_probabilities = log_softmax(table)
    live = {0: (BEGIN, 0.0)}
    for step in range(len(trace.ids)):
        candidates = candidates_of(trace, step)
        if not candidates:
            return
        offers = {}
        for place, (last, total) in live.items():
            found = total + log_probabilities[step, last]
            found[list(FORBIDDEN_IDS)] = -np.inf
            if step + 1 == limit:
                found[np.arange(len(found)) != END] = -np.inf
            for token in np.flatnonzero(found > -np.inf):
                offers[place, int(token)] = found[token]
        expected = sorted(offers.values(), reverse=True)[: 2 * beam_size]
        totals = [total for _, _, total, _ in candidates]
        np.testing.assert_allclose(totals, expected, rtol=1e-5, atol=1e-4)
        named = [(parent, token) for parent, token, _, _ in candidates]
        assert len(set(named)) == len(named)
        np.testing.assert_allclose(
            totals, [offers[name] for name in named], rtol=1e-5, atol=1e-4
        )
        # Greedy search uses only the first candidate.
        seen = named[:1] if beam_size == 1 else named
        going_on = [name for name in seen if name[1] != END][:beam_size]
        ended = [name for name in seen if name[1] == END]
        kept = [name for name, c in zip(named, candidates, strict=True) if c[3]]
        assert set(kept) == {*going_on, *ended}
        live = {named.index(name): (name[1], offers[name]) for name in going_on}


@settings(max_examples=20)
@hypothesis.given(
    seed=seeds,
    spread=spreads,
    alpha=alphas,
    beam_size=st.integers(1, 5),
    limits=st.lists(st.integers(1, 6), min_size=1, max_size=5),
)
def test_a_trace_is_the_search(seed, spread, alpha, beam_size, limits):
    tables = random_tables(seed, spread, (len(limits), 6, 7, 7))

    found, trace = run_trace(tables, beam_size, alpha, limits)

    expected, _ = run_search(tables, beam_size, alpha, limits)
    check_equal(found, expected)
    # That what has ended can be read from a trace alone, `explain_beam` shows.
    for place, limit in enumerate(limits):
        check_steps(sentence(trace, place), tables[place], beam_size, limit)


def test_a_trace_of_a_model_is_its_search():
    """Also where keys are as wide as values, whose empty caches are equal."""
    model = make_model(20, num_layers=2, key_dim=4, value_dim=4)
    batch = random_batch(model, seed=1, sentences=(5, 5))
    options = SearchOptions(beam_size=4)

    @tf.function(autograph=False)
    def search_both(*batch):
        fast = GraphTransformer(model, batch[0], options.beam_size, None)
        found, _ = trace_beam_search(fast, options, batch[1])
        return found, search_in_graph(model, *batch, options)

    found, expected = tf.nest.map_structure(
        lambda x: x.numpy(), search_both(*map(tf.constant, batch[:2]))
    )

    check_equal(found, expected)
