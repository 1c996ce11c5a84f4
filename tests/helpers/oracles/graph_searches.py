"""Runs the graph search over tables of logits, and over tiny Transformers.

The latter are searched by `search_in_graph` and by its specification,
`search_by_layers`, which calls the layers. Each is traced once a model: the
weights are read at each call.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.presets import Architecture
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from keras_transformer.search.tensorflow.search_loop import run_search_loop
from keras_transformer.search.transformer_search import search_by_layers
from keras_transformer.special_ids import EOS_ID, PADDING_ID
from tests.helpers.oracles.reference_searches import FORBIDDEN_IDS


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
    """Returns `Hypotheses` of arrays and a count of steps; `rules` have an int each."""
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


FIRST_WORD = 4  # Ids below it have a meaning of their own.
INPUT_SPECS = [
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.float32),
    tf.TensorSpec([None, None], tf.int32),
]
COUNT_SPECS = [tf.TensorSpec([], tf.int32)] * 2


class Batch(NamedTuple):
    """Inputs of both searches: arrays, one row for each sentence."""

    source_ids: np.ndarray  # (B, S) int32
    max_lengths: np.ndarray  # (B,) int32
    length_penalty: np.ndarray  # (B,) float32
    prefix_ids: np.ndarray  # (B, P) int32

    def take(self, rows):
        return Batch(*(x[rows] for x in self))


def make_model(
    vocabulary_size,
    sequence_length=512,
    dtype=None,
    source_vocabulary_size=None,
    **numbers,
):
    """Returns a built `Transformer` with a few features of all kinds."""
    sizes = {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 12}
    sizes |= {"num_heads": 2, "key_dim": 3, "value_dim": 5, **numbers}
    model = Transformer(
        vocabulary_size,
        Architecture(**sizes),
        sequence_length,
        source_vocabulary_size,
        dtype=dtype,
    )
    model.build()
    randomize(model, seed=2017)
    return model


def randomize(model, seed, end_scale=2.0):
    """Gives a model other weights; of a larger `end_scale` more translations end."""
    rng = np.random.default_rng(seed)
    tables = [model.embedding.embeddings, model.embedding_of_logits.embeddings]
    for weight in model.weights:
        value = rng.normal(size=weight.shape)
        if weight.path.endswith("gamma"):
            value = 1 + 0.3 * value
        elif len(weight.shape) == 1:
            value *= 0.3
        elif any(weight is table for table in tables):
            value *= 2 * weight.shape[1] ** -0.5
            value[EOS_ID] *= end_scale
        else:
            value *= weight.shape[0] ** -0.5
        weight.assign(value)


def random_batch(model, seed, limit=50, sentences=(1, 7), shortest=1):
    """Returns a `Batch` of sentences of all kinds."""
    rng = np.random.default_rng(seed)
    count = rng.integers(*sentences, endpoint=True)
    limits = rng.integers(1, limit, count, endpoint=True)
    lengths = rng.integers(shortest, 9, count, endpoint=True)
    size = (count, max(1, lengths.max()) + rng.integers(0, 3))
    sources = model.source_vocabulary_size or model.vocabulary_size
    source_ids = rng.integers(FIRST_WORD, sources, size)
    source_ids[np.arange(size[1]) >= lengths[:, None]] = PADDING_ID
    source_ids[lengths > 0, lengths[lengths > 0] - 1] = EOS_ID
    prefix_ids = rng.integers(FIRST_WORD, model.vocabulary_size, (count, 3))
    num_forced = np.minimum(rng.integers(0, 4, count), limits - 1)
    prefix_ids[np.arange(3) >= num_forced[:, None]] = PADDING_ID
    return Batch(
        source_ids.astype("int32"),
        limits.astype("int32"),
        rng.uniform(-0.5, 1.5, count).astype("float32"),
        prefix_ids.astype("int32"),
    )


def trace_fast(model, forbidden_ids=None, sizes=None):
    """Traces the fast search; any sizes of beam and result, or given ones."""
    counts = COUNT_SPECS if sizes is None else []

    @tf.function(input_signature=[*INPUT_SPECS, *counts], autograph=False)
    def search(*arguments):
        batch, found_sizes = arguments[:4], arguments[4:] or sizes
        return run_fast(model, batch, *found_sizes, forbidden_ids)

    return search


def run_fast(model, batch, beam_size, num_hypotheses=None, forbidden_ids=None):
    source_ids, max_lengths, length_penalty, prefix_ids = batch
    options = SearchOptions(beam_size, length_penalty, num_hypotheses, forbidden_ids)
    return search_in_graph(model, source_ids, max_lengths, options, prefix_ids)


def trace_plain(model, beam_size, forbidden_ids=None):
    """Traces the specification."""

    @tf.function(input_signature=INPUT_SPECS, autograph=False)
    def search(*batch):
        return run_plain(model, batch, beam_size, forbidden_ids)

    return search


def run_plain(model, batch, beam_size, forbidden_ids=None):
    source_ids, max_lengths, length_penalty, prefix_ids = batch
    return search_by_layers(
        model,
        source_ids,
        max_lengths,
        SearchOptions(beam_size, length_penalty, None, forbidden_ids),
        max_length=tf.reduce_max(max_lengths),
        prefix_ids=prefix_ids,
    )


def to_arrays(hypotheses):
    return tf.nest.map_structure(np.asarray, hypotheses)


def check_same(found, expected, atol=1e-4):
    """Checks that hypotheses, fewer in `found` maybe, differ by near ties only."""
    found, expected = to_arrays(found), to_arrays(expected)
    count = found.scores.shape[1]
    np.testing.assert_allclose(
        found.scores, expected.scores[:, :count], rtol=1e-5, atol=atol
    )
    with np.errstate(invalid="ignore"):
        gaps = -np.diff(expected.scores, prepend=np.inf, append=-np.inf)
    is_clear = ~(gaps <= 2 * atol)  # Between two empty slots: NaN.
    rows = (is_clear[:, :-1] & is_clear[:, 1:])[:, :count]
    width = min(found.ids.shape[2], expected.ids.shape[2])
    for one, other in ((found, expected), (expected, found)):
        assert not one.ids[:, :count, width:].any()
        np.testing.assert_array_equal(
            one.ids[:, :count, :width][rows], other.ids[:, :count, :width][rows]
        )
    for name in ("lengths", "truncated"):
        np.testing.assert_array_equal(
            getattr(found, name)[rows], getattr(expected, name)[:, :count][rows]
        )
