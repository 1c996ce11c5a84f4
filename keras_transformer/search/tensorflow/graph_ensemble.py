"""Several models as one for the search: the mean of their distributions."""

import math

import tensorflow as tf


class GraphEnsemble:
    """An ensemble as a model of `run_search_loop`.

    The probability of a token is the mean of the models' probabilities, as in
    fairseq and in the ensembles of Freitag et al. (2017). States, buffers and
    constants are tuples of those of the models.

    Args:
        models: Models of `run_search_loop`, with one vocabulary.
    """

    def __init__(self, models):
        self._models = tuple(models)

    def _with_models(self, *columns):
        return zip(self._models, *columns, strict=True)

    def limit(self, lengths):
        """Limits lengths to what all models can decode."""
        for model in self._models:
            lengths = model.limit(lengths)
        return lengths

    def start(self):
        return tuple(model.start() for model in self._models)

    def gather_sentences(self, states, rows, capacity):
        return split(
            model.gather_sentences(state, rows, capacity)
            for model, state in self._with_models(states)
        )

    def step(self, ids, index, buffers, constants):
        logits, buffers = split(
            model.step(ids, index, *state)
            for model, *state in self._with_models(buffers, constants)
        )
        return mean_log_probabilities(logits), buffers

    def reorder_beams(self, buffers, parents, constants):
        return tuple(
            model.reorder_beams(own, parents, fixed)
            for model, own, fixed in self._with_models(buffers, constants)
        )

    def store_sentences(self, buffers, constants):
        return tuple(
            model.store_sentences(*state)
            for model, *state in self._with_models(buffers, constants)
        )


def split(pairs):
    """Returns the first and the second parts of pairs, two tuples."""
    first, second = zip(*pairs, strict=True)
    return first, second


def mean_log_probabilities(all_logits):
    """Returns the logarithm of the mean of softmaxes, float32 `(..., V)`."""
    found = [tf.nn.log_softmax(tf.cast(x, tf.float32)) for x in all_logits]
    total = tf.reduce_logsumexp(tf.stack(found), axis=0)
    return total - math.log(len(found))
