"""Random arrays and masks, and comparisons of arrays."""

import numpy as np


def random_array(*shape, seed=2017):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask_of_lengths(lengths, size):
    return np.arange(size) < np.array(lengths)[:, None]


def softmax(logits):
    """Over the last axis, in float64."""
    logits = np.asarray(logits, "float64")
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def assert_close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance / 10)
