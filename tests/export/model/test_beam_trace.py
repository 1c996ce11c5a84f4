"""Tests of `export.model.beam_trace`."""

import functools

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from export.model.beam_trace import trace_beam_search
from tests.helpers.oracle import penalty
from tests.helpers.search_tables import BEGIN
from tests.helpers.search_tables import END
from tests.helpers.search_tables import NEVER
from tests.helpers.search_tables import alphas
from tests.helpers.search_tables import log_softmax
from tests.helpers.search_tables import random_tables
from tests.helpers.search_tables import run_search
from tests.helpers.search_tables import seeds
from tests.helpers.search_tables import sentence
from tests.helpers.search_tables import settings
from tests.helpers.search_tables import spreads
from tests.helpers.search_tables import table_step


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
        return trace_beam_search(
            next_step, state, beam_size, length_penalty, max_lengths
        )

    return search


def run_trace(tables, beam_size, alpha, limits):
    found = compiled_trace()(
        tables, np.int32(beam_size), np.float32(alpha), np.int32(limits)
    )
    return tf.nest.map_structure(lambda x: x.numpy(), found)


def candidates_of(trace, step):
    """Returns `(parent, id, log-probability)` of those that are there."""
    there = trace.log_probabilities[step] > -np.inf
    columns = [column[step][there].tolist() for column in trace]
    return list(zip(*columns, strict=True))


def finished_of(trace, beam_size, alpha):
    """Reads the finished hypotheses in a trace, and nothing but it.

    Returns:
        `(score, ids)` of each, best first, the earlier first of equals.
    """
    paths, finished = {0: ()}, []
    for step in range(len(trace.ids)):
        candidates = candidates_of(trace, step)[:beam_size]
        paths = {
            place: (*paths[parent], token)
            for place, (parent, token, _) in enumerate(candidates)
        }
        for place, (_, token, total) in enumerate(candidates):
            if token == END:
                ids = paths.pop(place)
                finished.append((total / penalty(step + 1, alpha), ids))
    return sorted(finished, key=lambda found: -found[0])


def check_steps(trace, table, beam_size, limit):
    """Compares each step with all continuations, in plain Python."""
    log_probabilities = log_softmax(table)
    live = {0: (BEGIN, 0.0)}
    for step in range(len(trace.ids)):
        candidates = candidates_of(trace, step)
        if not candidates:
            return
        offers = {}
        for beam, (last, total) in live.items():
            found = total + log_probabilities[step, last]
            found[list(NEVER)] = -np.inf
            if step + 1 == limit:
                found[np.arange(len(found)) != END] = -np.inf
            for token in np.argsort(-found)[:beam_size]:
                if found[token] > -np.inf:
                    offers[beam, int(token)] = found[token]
        expected = sorted(offers.values(), reverse=True)[: 2 * beam_size]
        totals = [total for _, _, total in candidates]
        np.testing.assert_allclose(totals, expected, rtol=1e-5, atol=1e-4)
        named = [(parent, token) for parent, token, _ in candidates]
        assert len(set(named)) == len(named)
        np.testing.assert_allclose(
            totals, [offers[name] for name in named], rtol=1e-5, atol=1e-4
        )
        live = {
            place: (token, offers[parent, token])
            for place, (parent, token, _) in enumerate(candidates[:beam_size])
            if token != END
        }


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
    tf.nest.map_structure(np.testing.assert_array_equal, found, expected)
    for place, limit in enumerate(limits):
        own = sentence(trace, place)
        hypotheses = sentence(expected, place)
        check_steps(own, tables[place], beam_size, limit)
        finished = finished_of(own, beam_size, alpha)[:beam_size]
        filled = hypotheses.lengths > 0
        assert filled.sum() == len(finished)
        np.testing.assert_allclose(
            [score for score, _ in finished],
            hypotheses.scores[filled],
            rtol=1e-5,
        )
        read = [
            tuple(ids[:length].tolist())
            for ids, length in zip(
                hypotheses.ids, hypotheses.lengths, strict=True
            )
            if length
        ]
        assert [ids for _, ids in finished] == read


def test_what_is_not_there_says_so():
    """A step with one beam prunes nothing, and after the last is nothing."""
    table = np.full((1, 3, 4, 4), -10, "float32")
    table[..., END] = 0
    table[..., NEVER] = -np.inf

    _, trace = run_trace(table, 2, 0.6, [3])

    assert trace.ids[0, 0].tolist() == [END, 2, 0, 0]
    assert trace.parents[0, 0].tolist() == [0, 0, -1, -1]
    assert trace.ids[0, 1].tolist() == [END, 2, 0, 0]
    assert trace.parents[0, 1].tolist() == [1, 1, -1, -1]
    assert np.isneginf(trace.log_probabilities[0, :2, 2:]).all()
    assert (trace.ids[0, 2] == 0).all()
    assert (trace.parents[0, 2] == -1).all()
