import functools

import hypothesis
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tree_constraint import TAG, TreeConstraint
from tests.helpers.oracles.graph_searches import graph_beam_search, table_step
from tests.helpers.oracles.reference_searches import (
    END,
    log_softmax,
    random_tables,
    score,
    seeds,
    settings,
    spreads,
)

VOCABULARY_SIZE = 12
BRACKETS = {4: 5, 6: 7}
TAGS = (8, 9)
# Two words, one of two tokens; and one word.
SENTENCES = [((10, 11), (10,)), ((2,),)]
LIMITS = [10, 7]
BEAM_SIZE = 300
ALPHA = 0.6


def find_forests(words, room):
    """Yields sequences of trees of these words, of at most `room` tokens."""
    if not words:
        yield ()
        return
    for tag in TAGS:
        leaf = (*words[0], tag)
        for others in find_forests(words[1:], room - len(leaf)):
            yield leaf + others
    for opening, closing in BRACKETS.items() if room > 2 else ():
        for count in range(1, len(words) + 1):
            for inner in find_forests(words[:count], room - 2):
                tree = (opening, *inner, closing)
                for others in find_forests(words[count:], room - len(tree)):
                    yield tree + others


def trees_of(words, limit):
    """Returns all trees of at most `limit` tokens with EOS."""
    return [
        (*tokens, END)
        for tokens in set(find_forests(words, limit))
        if len(tokens) < limit
    ]


def leaves_of(sentences):
    rows = [[token for word in words for token in (*word, TAG)] for words in sentences]
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], "int32")


@functools.cache
def traced(search):
    @tf.function(autograph=False)
    def run(tables):
        step, state = table_step(tables, BEAM_SIZE)
        constraint = TreeConstraint(
            BRACKETS, TAGS, VOCABULARY_SIZE, tf.constant(leaves_of(SENTENCES))
        )
        options = SearchOptions(BEAM_SIZE, ALPHA, tree=constraint)
        return search(step, state, options, tf.constant(LIMITS))

    return run


@pytest.mark.parametrize(
    "search",
    [graph_beam_search, functools.partial(beam_search, max_length=max(LIMITS))],
    ids=["graph", "portable"],
)
@settings(max_examples=10)
@hypothesis.given(seed=seeds, spread=spreads)
def test_a_wide_beam_finds_every_tree_and_nothing_else(search, seed, spread):
    shape = (len(SENTENCES), max(LIMITS), VOCABULARY_SIZE, VOCABULARY_SIZE)
    tables = np.nan_to_num(random_tables(seed, spread, shape), neginf=-5.0)

    found = traced(search)(tf.constant(tables))

    for index, (words, limit) in enumerate(zip(SENTENCES, LIMITS, strict=True)):
        log_probabilities = log_softmax(tables[index])
        expected = {
            ids: score(log_probabilities, ids, ALPHA) for ids in trees_of(words, limit)
        }
        assert 10 < len(expected) < BEAM_SIZE
        is_found = found.scores[index].numpy() > -np.inf
        ids = [
            tuple(row[:length].tolist())
            for row, length in zip(
                found.ids[index].numpy()[is_found],
                found.lengths[index].numpy()[is_found],
                strict=True,
            )
        ]
        assert sorted(ids) == sorted(expected)
        np.testing.assert_allclose(
            found.scores[index].numpy()[is_found],
            [expected[each] for each in ids],
            rtol=1e-4,
        )
        assert not found.truncated[index].numpy()[is_found].any()
