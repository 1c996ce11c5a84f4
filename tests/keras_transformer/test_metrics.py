import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Perplexity, TokenAccuracy

VOCABULARY = 11


def batches():
    """Labels, logits and weights of batches of unequal size and padding."""
    rng = np.random.default_rng(seed=2017)
    for shape, real in [((2, 5), 0.9), ((4, 3), 0.3), ((1, 7), 0.6)]:
        labels = rng.integers(1, VOCABULARY, size=shape)
        labels *= rng.random(shape) < real
        logits = 2 * rng.normal(size=(*shape, VOCABULARY))
        logits += 8 * real * np.eye(VOCABULARY)[labels]
        weights = rng.uniform(0.5, 2.0, size=shape)
        yield labels, logits.astype("float32"), weights.astype("float32")


def log_likelihood(labels, logits):
    logits = np.asarray(logits, "float64")
    norm = np.log(np.exp(logits).sum(axis=-1))
    return np.take_along_axis(logits, labels[..., None], -1)[..., 0] - norm


def hits(labels, logits):
    return (logits.argmax(axis=-1) == labels).astype("float64")


def token_mean(values, weighted):
    """The mean over all tokens of all batches; padding is no token."""
    total = count = 0.0
    for labels, logits, weights in batches():
        weights = (labels != 0) * (weights if weighted else 1.0)
        total += np.sum(values(labels, logits) * weights)
        count += np.sum(weights)
    return total / count


EXPECTED = {
    TokenAccuracy: lambda weighted: token_mean(hits, weighted),
    Perplexity: lambda weighted: np.exp(-token_mean(log_likelihood, weighted)),
}
both = pytest.mark.parametrize("cls", EXPECTED)


@both
@pytest.mark.parametrize("weighted", [False, True])
def test_each_token_of_all_batches_counts_once(cls, weighted):
    metric = cls()
    of_batches = []
    for labels, logits, weights in batches():
        weights = weights if weighted else None
        metric.update_state(labels, logits, sample_weight=weights)
        alone = cls()
        alone.update_state(labels, logits, sample_weight=weights)
        of_batches.append(float(alone.result()))

    result = metric.result()

    assert result.dtype == "float32"
    assert result.shape == ()
    np.testing.assert_allclose(result, EXPECTED[cls](weighted), rtol=1e-5)
    # The batches are so uneven that the mean of their results is another.
    assert abs(float(result) - np.mean(of_batches)) > 1e-2


@pytest.mark.parametrize(("cls", "nothing"), [(TokenAccuracy, 0), (Perplexity, 1)])
def test_before_any_token_and_after_a_reset(cls, nothing):
    metric = cls()
    assert float(metric.result()) == nothing
    metric.update_state(np.zeros((1, 2), int), np.ones((1, 2, VOCABULARY)))
    assert float(metric.result()) == nothing

    for labels, logits, _ in batches():
        metric.reset_state()
        assert float(metric.result()) == nothing
        metric.update_state(labels, logits)
    once = cls()
    once.update_state(labels, logits)

    assert float(metric.result()) == float(once.result()) != nothing


def test_perplexity_of_half_precision_logits_is_computed_in_float32():
    labels = np.array([[257, 999, 4, 0]])
    logits = np.random.default_rng(5).normal(size=(1, 4, 1000))
    logits = tf.cast(logits, "bfloat16")
    metric = Perplexity()

    metric.update_state(labels, logits)

    exact = tf.cast(logits, "float64").numpy()
    values = log_likelihood(labels, exact)[0, :3]
    np.testing.assert_allclose(metric.result(), np.exp(-values.mean()), 1e-5)


@both
def test_counts_more_tokens_than_half_precision_can(cls):
    expected = cls()
    keras.config.set_floatx("bfloat16")
    try:
        metric = cls()
    finally:
        keras.config.set_floatx("float32")
    for labels, logits, _ in list(batches()) * 20:
        metric.update_state(labels, logits)
        expected.update_state(labels, logits)

    assert metric.result().dtype == "float32"
    np.testing.assert_allclose(metric.result(), expected.result(), rtol=1e-5)
