import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import SmoothedCrossentropy
from tests.helpers.oracles.numpy_oracles import assert_close, softmax

# Rows of 5, 2 and 0 real tokens, padding not only at the end.
LABELS = np.array([[7, 3, 10, 1, 4], [0, 9, 0, 1, 0], [0, 0, 0, 0, 0]])
REAL = LABELS != 0
VOCABULARY = 11


def random_logits(shape=(*LABELS.shape, VOCABULARY)):
    rng = np.random.default_rng(seed=2017)
    return (3 * rng.normal(size=shape)).astype("float32")


def smoothed_labels(labels, smoothing):
    """`q`: 1 - ε for the label, ε / (V - 1) for each other token."""
    q = np.full((*labels.shape, VOCABULARY), smoothing / (VOCABULARY - 1))
    np.put_along_axis(q, labels[..., None], 1 - smoothing, axis=-1)
    return q


def crossentropy(labels, logits, smoothing):
    """`-sum_v q(v) log p(v)` at each position, padding too."""
    q = smoothed_labels(labels, smoothing)
    return -np.sum(q * np.log(softmax(logits)), axis=-1)


def test_only_padding_costs_nothing():
    loss = SmoothedCrossentropy()(np.zeros((2, 3), int), random_logits((2, 3, 5)))
    assert float(loss) == 0.0


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.35])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean_with_sample_weight", "sum", "none"])
def test_equals_section_5_4(reduction, weighted, smoothing):
    logits = random_logits()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=LABELS.shape)
    weights = weights if weighted else np.ones(LABELS.shape)
    loss = SmoothedCrossentropy(smoothing, reduction=reduction)

    value = loss(LABELS, logits, sample_weight=weights if weighted else None)

    each = crossentropy(LABELS, logits, smoothing) * weights * REAL
    expected = {
        "mean_with_sample_weight": each.sum() / (weights * REAL).sum(),
        "sum": each.sum(),
        "none": each,
    }[reduction]
    assert value.shape == expected.shape
    assert value.dtype == "float32"
    assert_close(value, expected)


def test_labels_of_rank_1_and_any_integer_type():
    logits = random_logits()
    loss = SmoothedCrossentropy()
    expected = loss(LABELS, logits)

    assert_close(loss(LABELS[REAL], logits[REAL]), expected)
    assert_close(loss(LABELS.reshape(-1), logits.reshape(-1, 11)), expected)
    for dtype in ["uint8", "int32", "int64"]:
        assert_close(loss(tf.constant(LABELS, dtype), logits), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_logits_are_reduced_in_float32(dtype):
    # The ids need more than the eight bits of a bfloat16, too.
    labels = np.array([[257, 999, 4, 0, 1]])
    logits = tf.cast(random_logits((1, 5, 1000)), dtype)

    loss = SmoothedCrossentropy(0.0)(labels, logits)

    assert loss.dtype == "float32"
    exact = np.log(softmax(tf.cast(logits, "float64")))
    expected = -np.mean([exact[0, i, labels[0, i]] for i in (0, 1, 2, 4)])
    assert_close(loss, expected)


def test_trains_a_model_whose_output_carries_a_mask(tmp_path):
    # The ids are the labels, so the mask of the embedding hides the same.
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(VOCABULARY, 4, mask_zero=True)
    dense = keras.layers.Dense(VOCABULARY)
    model = keras.Model(ids, dense(embedding(ids)))
    model.compile(
        keras.optimizers.SGD(learning_rate=2.0),
        loss=SmoothedCrossentropy(label_smoothing=0.25),
    )
    model.set_weights([random_logits(w.shape) for w in model.get_weights()])
    logits, bias = model(LABELS).numpy(), dense.bias.numpy()
    np.testing.assert_array_equal(embedding.compute_mask(LABELS), REAL)
    assert dense.supports_masking  # It hands the mask on to its output.

    history = model.fit(LABELS, LABELS, batch_size=3, verbose=0).history

    expected = crossentropy(LABELS, logits, 0.25)[REAL].mean()
    assert_close(history["loss"], [expected])
    gradient = (softmax(logits) - smoothed_labels(LABELS, 0.25))[REAL].mean(0)
    assert_close(dense.bias, bias - 2.0 * gradient)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(
        loaded.evaluate(LABELS, LABELS, verbose=0),
        model.evaluate(LABELS, LABELS, verbose=0),
    )


def test_a_weight_a_sentence_weighs_its_tokens():
    """With as many sentences as positions, broadcasting would do otherwise."""
    logits = random_logits((3, 3, 11))
    labels = np.array([[5, 1, 0], [7, 4, 1], [9, 1, 0]])
    weights = np.array([0.5, 3.0, 1.0])
    loss = SmoothedCrossentropy()

    value = loss(labels, logits, sample_weight=weights)

    spread = np.repeat(weights[:, None], 3, axis=1)
    assert_close(value, loss(labels, logits, sample_weight=spread))
    assert abs(value - loss(labels, logits, sample_weight=spread.T)) > 1e-3
    assert_close(loss(labels, logits, weights[:, None]), value)
    with pytest.raises(ValueError, match="`sample_weight` must be of the shape"):
        loss(labels, logits, sample_weight=spread[..., None])
