"""Tests of `keras_transformer.losses`."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import SmoothedCrossentropy
from tests.helpers.arrays import assert_close
from tests.helpers.arrays import softmax

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


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.35])
def test_equals_section_5_4(smoothing):
    logits = random_logits()

    loss = SmoothedCrossentropy(smoothing)(LABELS, logits)

    assert loss.shape == ()
    assert loss.dtype == "float32"
    expected = crossentropy(LABELS, logits, smoothing)[REAL].mean()
    assert_close(loss, expected)


def test_smooths_by_a_tenth_unless_told():
    logits = random_logits()
    assert_close(
        SmoothedCrossentropy()(LABELS, logits),
        SmoothedCrossentropy(label_smoothing=0.1)(LABELS, logits),
    )


def test_the_smoothed_labels_are_its_minimum():
    # Gibbs: no p gives less than p = q, and there it is the entropy of q.
    q = smoothed_labels(LABELS, 0.1)
    loss = SmoothedCrossentropy(0.1)

    entropy = -np.sum(q[0, 0] * np.log(q[0, 0]))
    assert_close(loss(LABELS, np.log(q)), entropy)
    noise = 0.1 * random_logits()
    assert float(loss(LABELS, np.log(q) + noise)) > entropy + 1e-3


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_torch_with_its_gradient(smoothing):
    torch = pytest.importorskip("torch", reason="torch is only an oracle here")
    logits = random_logits()
    # PyTorch spreads its ε over all V tokens, the label too.
    oracle = torch.nn.CrossEntropyLoss(
        ignore_index=0,
        label_smoothing=smoothing * VOCABULARY / (VOCABULARY - 1),
    )
    flat = torch.tensor(logits.reshape(-1, VOCABULARY), requires_grad=True)
    expected = oracle(flat, torch.tensor(LABELS.reshape(-1)))
    expected.backward()

    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = SmoothedCrossentropy(smoothing)(LABELS, variable)

    assert_close(loss, expected.item())
    assert_close(
        tape.gradient(loss, variable), flat.grad.numpy().reshape(logits.shape)
    )


def test_gradient_is_that_of_the_formula_and_zero_at_padding():
    variable = tf.Variable(random_logits())
    with tf.GradientTape() as tape:
        loss = SmoothedCrossentropy(0.1)(LABELS, variable)

    gradient = tape.gradient(loss, variable).numpy()

    expected = softmax(variable) - smoothed_labels(LABELS, 0.1)
    expected *= REAL[..., None] / REAL.sum()
    assert_close(gradient, expected)
    np.testing.assert_array_equal(gradient[~REAL], 0.0)


def test_padding_weighs_nothing():
    logits = random_logits()
    changed = np.where(REAL[..., None], logits, 50 * logits[::-1])
    more = np.pad(logits, [(0, 0), (0, 2), (0, 0)], constant_values=8.0)
    loss = SmoothedCrossentropy()

    expected = loss(LABELS, logits)

    assert_close(loss(LABELS, changed), expected)
    assert_close(loss(np.pad(LABELS, [(0, 0), (0, 2)]), more), expected)


def test_only_padding_costs_nothing():
    loss = SmoothedCrossentropy()(
        np.zeros((2, 3), int), random_logits((2, 3, 5))
    )
    assert float(loss) == 0.0


def test_each_token_weighs_the_same():
    # Not the mean over positions, nor the mean of the means of the rows.
    logits = random_logits()
    each = crossentropy(LABELS, logits, 0.1)
    rows = [each[row, REAL[row]].mean() for row in (0, 1)]

    loss = float(SmoothedCrossentropy(0.1)(LABELS, logits))

    assert_close(loss, (5 * rows[0] + 2 * rows[1]) / 7)
    assert abs(loss - np.mean(rows)) > 1e-2
    assert abs(loss - (each * REAL).mean()) > 1e-2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "reduction", ["mean_with_sample_weight", "sum", "none"]
)
def test_reductions_and_sample_weights(reduction, weighted):
    logits = random_logits()
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=LABELS.shape)
    weights = weights if weighted else np.ones(LABELS.shape)
    loss = SmoothedCrossentropy(0.1, reduction=reduction)

    value = loss(LABELS, logits, sample_weight=weights if weighted else None)

    each = crossentropy(LABELS, logits, 0.1) * weights * REAL
    expected = {
        "mean_with_sample_weight": each.sum() / (weights * REAL).sum(),
        "sum": each.sum(),
        "none": each,
    }[reduction]
    assert value.shape == expected.shape
    assert_close(value, expected)


def test_without_smoothing_is_that_of_keras():
    logits = random_logits()
    keras_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    loss = SmoothedCrossentropy(label_smoothing=0.0)(LABELS, logits)

    assert_close(loss, keras_loss(LABELS[REAL], logits[REAL]))


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


def test_ids_survive_a_half_precision_floatx():
    labels = np.array([[257, 999, 4, 0, 1]])
    logits = random_logits((1, 5, 1000))
    expected = SmoothedCrossentropy()(labels, logits)
    keras.config.set_floatx("bfloat16")
    try:
        loss = SmoothedCrossentropy()(labels, logits)
    finally:
        keras.config.set_floatx("float32")

    assert loss.dtype == "float32"
    assert_close(loss, expected)


def test_comes_back_from_its_config():
    loss = SmoothedCrossentropy(0.25, reduction="sum", name="cost")

    config = json.loads(json.dumps(keras.saving.serialize_keras_object(loss)))
    twin = keras.saving.deserialize_keras_object(config)

    assert isinstance(twin, SmoothedCrossentropy)
    assert twin.get_config() == {
        "name": "cost",
        "reduction": "sum",
        "label_smoothing": 0.25,
    }
    logits = random_logits()
    assert_close(twin(LABELS, logits), loss(LABELS, logits))


def test_trains_a_model_whose_output_carries_a_mask(tmp_path):
    # The ids are the labels, so the mask of the embedding hides the same.
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(VOCABULARY, 4, mask_zero=True)
    dense = keras.layers.Dense(VOCABULARY)
    model = keras.Model(ids, dense(embedding(ids)))
    model.compile(
        keras.optimizers.SGD(learning_rate=2.0),
        loss=SmoothedCrossentropy(label_smoothing=0.1),
    )
    model.set_weights([random_logits(w.shape) for w in model.get_weights()])
    logits, bias = model(LABELS).numpy(), dense.bias.numpy()
    np.testing.assert_array_equal(embedding.compute_mask(LABELS), REAL)
    assert dense.supports_masking  # It hands the mask on to its output.

    history = model.fit(LABELS, LABELS, batch_size=3, verbose=0).history

    expected = crossentropy(LABELS, logits, 0.1)[REAL].mean()
    assert_close(history["loss"], [expected])
    gradient = (softmax(logits) - smoothed_labels(LABELS, 0.1))[REAL].mean(0)
    assert_close(dense.bias, bias - 2.0 * gradient)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(
        loaded.evaluate(LABELS, LABELS, verbose=0),
        model.evaluate(LABELS, LABELS, verbose=0),
    )


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 1.5, "0.1", None, np.nan])
def test_refuses_smoothing_outside_of_0_to_1(smoothing):
    with pytest.raises(ValueError, match=r"`label_smoothing` .* in \[0, 1\)"):
        SmoothedCrossentropy(label_smoothing=smoothing)


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
    with pytest.raises(
        ValueError, match="`sample_weight` must be of the shape"
    ):
        loss(labels, logits, sample_weight=spread[..., None])


def test_refuses_a_mean_that_counts_padding():
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        SmoothedCrossentropy(reduction="sum_over_batch_size")
