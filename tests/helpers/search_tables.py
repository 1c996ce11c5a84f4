"""Searches of random models, which are tables of logits.

A table is `(L, V, V)`: the next token depends on the position and on the last
token.
"""

import functools

import hypothesis
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from keras_transformer.search.graph_search import beam_search

PADDING = 0
END = 1
BEGIN = 3
NEVER = (PADDING, BEGIN)

# Reproducible; a search is slow when the machine is busy.
settings = functools.partial(
    hypothesis.settings, derandomize=True, deadline=None
)
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


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    top = logits.max(axis=-1, keepdims=True)
    total = np.exp(logits - top).sum(axis=-1, keepdims=True)
    return logits - top - np.log(total)


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
def traced_search(num_hypotheses=None, never=NEVER):
    """One graph for all batches, beams, tables, penalties and limits."""
    count = tf.Variable(0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, None, None], tf.float32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
        ]
    )
    def search(tables, beam_size, length_penalty, max_lengths, prefix_ids):
        count.assign(0)
        next_step, state = table_step(tables, beam_size, count)
        hypotheses = beam_search(
            next_step,
            state,
            beam_size,
            length_penalty,
            max_lengths,
            num_hypotheses=num_hypotheses,
            forbidden_ids=never,
            prefix_ids=prefix_ids,
        )
        return hypotheses, count.read_value()

    return search


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


def sentence(hypotheses, index):
    return type(hypotheses)(*[x[index] for x in hypotheses])
