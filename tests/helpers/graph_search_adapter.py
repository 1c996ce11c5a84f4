"""Runs the graph search over any next-step function, as `beam_search` does."""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.search.tensorflow.search_loop import run_search_loop


def graph_beam_search(
    next_step, initial_state, options, max_lengths, prefix_ids=None, constants=()
):
    """Beam search as in `beam_search`, in a TensorFlow graph, and faster.

    The arguments are those of `beam_search`; `constants` is a tuple of nested
    structures of tensors with `B` rows. Dimensions of the state after the first
    may change from step to step if they are initially unknown.
    """
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
