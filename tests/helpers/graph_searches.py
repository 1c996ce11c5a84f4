"""Runs the graph search over any next-step function, and over tables of logits."""

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.search_loop import run_search_loop
from tests.helpers.reference_searches import FORBIDDEN_IDS


def graph_beam_search(
    next_step, initial_state, options, max_lengths, prefix_ids=None, constants=()
):
    """Beam search in a TensorFlow graph, with the arguments of `beam_search`."""
    model = StepModel(next_step, initial_state, constants, options.beam_size)
    return run_search_loop(model, options, max_lengths, prefix_ids)


class StepModel(NamedTuple):
    """Adapts the arguments of `beam_search` to a model of `run_search_loop`."""

    next_step: Any
    initial_state: Any
    constants: Any
    beam_size: Any

    def start(self):
        state = (self.initial_state, self.constants)
        return tf.nest.map_structure(tf.convert_to_tensor, state)

    def gather_sentences(self, stored, rows, capacity):
        state, constants = stored
        beams = tf.range(self.beam_size)[None]
        state = self._take(state, rows, tf.repeat(beams, tf.size(rows), axis=0))
        return state, tf.nest.map_structure(lambda x: tf.gather(x, rows), constants)

    def step(self, ids, index, state, constants):
        return self.next_step(ids, index, state, *constants)

    def reorder_beams(self, state, parents, constants):
        return self._take(state, tf.range(tf.shape(parents)[0]), parents)

    def store_sentences(self, state, constants):
        return state, constants

    def _take(self, state, rows, beams):
        """Takes beams, `(B, K)`, of sentences, `(B,)`; all share state of rank 0."""
        places = tf.reshape(beams + self.beam_size * rows[:, None], [-1])
        return tf.nest.map_structure(
            lambda x: tf.gather(x, places) if x.shape.rank else x, state
        )


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
    constraints=(),
):
    """One graph for all batches, beams, tables, penalties, limits and constraints.

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
            *[tf.TensorSpec([None], tf.int32)] * len(constraints),
        ]
    )
    def run(tables, beam_size, length_penalty, max_lengths, prefix_ids, *values):
        count.assign(0)
        beam_size = known_beam_size or beam_size
        next_step, state = table_step(tables, beam_size, count)
        rules = dict(zip(constraints, values, strict=True))
        options = SearchOptions(
            beam_size, length_penalty, num_hypotheses, never, **rules
        )
        hypotheses = search(next_step, state, options, max_lengths, prefix_ids)
        return hypotheses, count.read_value()

    return run


def run_search(tables, beam_size, alpha, limits, prefixes=None, rules=None, **kwargs):
    """Returns `Hypotheses` of arrays and the number of steps taken.

    `rules` are options of `SearchOptions` with an int for each sentence.
    """
    rules = rules or {}
    prefix_ids = np.zeros((len(limits), 0), "int32")
    if prefixes is not None:
        prefix_ids = tf.ragged.constant(prefixes, tf.int32, 1).to_tensor()
    hypotheses, steps = traced_search(**kwargs, constraints=tuple(rules))(
        tables,
        np.int32(beam_size),
        np.broadcast_to(np.float32(alpha), len(limits)),
        np.int32(limits),
        prefix_ids,
        *map(np.int32, rules.values()),
    )
    return tf.nest.map_structure(lambda x: x.numpy(), hypotheses), int(steps)
