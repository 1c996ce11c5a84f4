"""Random arrays and masks, and comparisons of arrays."""

import numpy as np


def random_array(*shape, seed=2017):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask_of_lengths(lengths, size):
    return np.arange(size) < np.array(lengths)[:, None]


def log_softmax(logits):
    """Over the last axis, in float64."""
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def softmax(logits):
    return np.exp(log_softmax(logits))


def assert_close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance / 10)
