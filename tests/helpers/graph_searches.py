"""Runs the graph search over tables of logits, traced once."""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.search.options import SearchOptions
from tests.helpers.graph_search_adapter import graph_beam_search
from tests.helpers.reference_searches import FORBIDDEN_IDS


def table_step(tables, beam_size, count=None):
    """Returns `next_step` and its state, the sentence of each row."""
    sentences = tf.repeat(tf.range(tf.shape(tables)[0]), beam_size)

    def next_step(ids, index, sentences):
        if count is not None:
            count.assign_add(1)
        index = tf.fill(tf.shape(ids), index)
        rows = tf.stack([sentences, index, ids], axis=1)
        return tf.gather_nd(tables, rows), sentences

    return next_step, sentences


@functools.cache
def traced_search(
    num_hypotheses=None,
    never=FORBIDDEN_IDS,
    search=graph_beam_search,
    known_sizes=(None, None),
):
    """One graph for all batches, beams, tables, penalties and limits.

    `known_sizes` are those of the beam and of the vocabulary, where a `search` must
    know them beforehand.
    """
    known_beam_size, width = known_sizes
    count = tf.Variable(0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, width, width], tf.float32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
        ]
    )
    def run(tables, beam_size, length_penalty, max_lengths, prefix_ids):
        count.assign(0)
        beam_size = known_beam_size or beam_size
        next_step, state = table_step(tables, beam_size, count)
        options = SearchOptions(beam_size, length_penalty, num_hypotheses, never)
        hypotheses = search(next_step, state, options, max_lengths, prefix_ids)
        return hypotheses, count.read_value()

    return run


def run_search(tables, beam_size, alpha, limits, prefixes=None, **kwargs):
    """Returns `Hypotheses` of arrays and the number of steps taken."""
    prefix_ids = np.zeros((len(limits), 0), "int32")
    if prefixes is not None:
        prefix_ids = tf.ragged.constant(prefixes, tf.int32, 1).to_tensor()
    hypotheses, steps = traced_search(**kwargs)(
        tables,
        np.int32(beam_size),
        np.broadcast_to(np.float32(alpha), len(limits)),
        np.int32(limits),
        prefix_ids,
    )
    return tf.nest.map_structure(lambda x: x.numpy(), hypotheses), int(steps)
