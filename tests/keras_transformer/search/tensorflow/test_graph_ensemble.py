import functools

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_ensemble import GraphEnsemble
from keras_transformer.search.tensorflow.search_loop import run_search_loop
from tests.helpers.oracles.graph_searches import StepModel, table_step
from tests.helpers.oracles.reference_searches import (
    FORBIDDEN_IDS,
    check_sentence,
    exhaustive_search,
    log_softmax,
    random_tables,
    seeds,
    sentence,
    settings,
    spreads,
)

BEAM_SIZE, NUM_MODELS = 40, 3


@functools.cache
def traced_search():
    @tf.function(
        input_signature=[
            tf.TensorSpec([NUM_MODELS, None, 4, 6, 6], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ],
        autograph=False,
    )
    def run(tables, limits):
        models = [
            StepModel(*table_step(each, BEAM_SIZE), (), BEAM_SIZE)
            for each in tf.unstack(tables)
        ]
        options = SearchOptions(BEAM_SIZE, 0.6, forbidden_ids=FORBIDDEN_IDS)
        return run_search_loop(GraphEnsemble(models), options, limits)

    return run


@settings(max_examples=20)
@hypothesis.given(
    seed=seeds,
    spread=spreads,
    limits=st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
def test_a_wide_beam_finds_what_the_mean_distribution_has(seed, spread, limits):
    tables = random_tables(seed, spread, (NUM_MODELS, len(limits), 4, 6, 6))

    found = traced_search()(tables, limits)

    found = type(found)(*map(np.array, found))
    with np.errstate(divide="ignore"):
        mean = np.log(np.exp(log_softmax(tables)).mean(axis=0))
    for index, limit in enumerate(limits):
        expected = exhaustive_search(mean[index], limit, 0.6)
        check_sentence(
            sentence(found, index),
            mean[index],
            limit,
            0.6,
            [score for score, _ in expected],
        )
