"""Several models as one for the search: the mean of their distributions."""

import math

import tensorflow as tf


class GraphEnsemble:
    """An ensemble as a model of `run_search_loop`.

    The probability of a token is the mean of the models' probabilities, as in
    fairseq and in the ensembles of Freitag et al. (2017); the models' states
    stand side by side.

    Args:
        models: Models of `run_search_loop`, with one vocabulary.
    """

    def __init__(self, models):
        self._models = tuple(models)

    def limit(self, lengths):
        """Limits lengths to what all models can decode."""
        for model in self._models:
            lengths = model.limit(lengths)
        return lengths

    def start(self):
        """Returns the states of all sentences, one of each model."""
        return tuple(model.start() for model in self._models)

    def gather_sentences(self, states, rows, capacity):
        """Returns a tuple of the models' buffers, and one of constants."""
        return split(
            model.gather_sentences(state, rows, capacity)
            for model, state in zip(self._models, states, strict=True)
        )

    def step(self, ids, index, buffers, constants):
        """Decodes one position.

        Returns:
            The logarithms of the mean probabilities, float32 `(B * K, V)`, and
            the models' buffers.
        """
        logits, buffers = split(
            model.step(ids, index, *state)
            for model, *state in zip(self._models, buffers, constants, strict=True)
        )
        return mean_log_probabilities(logits), buffers

    def reorder_beams(self, buffers, parents, constants):
        """Makes each hypothesis continue its parent, in all models."""
        return tuple(
            model.reorder_beams(own, parents, fixed)
            for model, own, fixed in zip(self._models, buffers, constants, strict=True)
        )

    def store_sentences(self, buffers, constants):
        """Returns the states that `gather_sentences` takes."""
        return tuple(
            model.store_sentences(own, fixed)
            for model, own, fixed in zip(self._models, buffers, constants, strict=True)
        )


def split(pairs):
    """Returns the first and the second parts of pairs, two tuples."""
    first, second = zip(*pairs, strict=True)
    return first, second


def mean_log_probabilities(all_logits):
    """Returns the logarithm of the mean of softmaxes, float32 `(..., V)`.

    Args:
        all_logits: Sequence of float tensors `(..., V)`.
    """
    found = [tf.nn.log_softmax(tf.cast(x, tf.float32)) for x in all_logits]
    total = tf.reduce_logsumexp(tf.stack(found), axis=0)
    return total - math.log(len(found))
