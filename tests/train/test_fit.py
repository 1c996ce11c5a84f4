"""Tests of `train.fit` and the final average."""

import dataclasses
import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from keras_transformer import SmoothedCrossentropy
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from tests.helpers.small_runs import (
    SETTINGS,
    VOCABULARY_SIZE,
    make_training_pairs,
    preset,
    small_task,
    weights_after_twenty_updates,
)
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.final_model import score_model
from train.fit import fit, make_strategy
from train.loop.distributed_optimizer import FIRST_LOSS_SCALE
from train.loop.training_model import TrainingModel


@pytest.fixture(scope="module")
def pairs():
    return make_training_pairs()


@pytest.mark.parametrize(
    ("logits_bias", "tied"),
    [(False, True), (True, True), (True, False), (False, "custom")],
)
def test_the_loss_is_the_smoothed_crossentropy_of_a_token(pairs, logits_bias, tied):
    changes = {"label_smoothing": 0.2, "logits_bias": logits_bias}
    if tied == "custom":
        model = CustomOutputModel(VOCABULARY_SIZE, preset().architecture, 16)
        task = TrainingModel(model, label_smoothing=0.2)
        task.build()
    else:
        task = small_task(**changes, tied_output=tied)
    if logits_bias:
        random = np.random.default_rng(1)
        bias = random.normal(size=VOCABULARY_SIZE)
        bias[:2] = -100.0  # Of what a converted model never says.
        task.transformer.embedding_of_logits.bias.assign(bias)
    batch = BatchPlan(pairs, 120, 0).batch(0)
    names = ("source_ids", "target_ids", "labels", "num_tokens")
    batch = dict(zip(names, batch, strict=True))
    variables = task.transformer.trainable_variables

    with tf.GradientTape(persistent=True) as tape:
        own = task.loss_sum(batch, training=False)
        logits = task.transformer(batch)
        expected = SmoothedCrossentropy(0.2, reduction="sum")(batch["labels"], logits)

    np.testing.assert_allclose(own, expected, rtol=1e-5)
    for variable, gradient, other in zip(
        variables,
        tape.gradient(own, variables),
        tape.gradient(expected, variables),
        strict=True,
    ):
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient),
            tf.convert_to_tensor(other),
            rtol=1e-4,
            atol=1e-4,  # Sums of some hundred terms near 1.
            err_msg=variable.path,
        )
    nll = -tf.nn.log_softmax(logits)
    gold = tf.gather(nll, batch["labels"], batch_dims=2)[batch["labels"] != 0]
    np.testing.assert_allclose(
        task.get_metrics_result()["perplexity"], np.exp(np.mean(gold)), rtol=1e-4
    )


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(False, id="sgd"),
        pytest.param(True, id="adam", marks=pytest.mark.slow),
    ],
)
def one_device(request, pairs):
    """Whether with Adam, and what one device does with whole batches."""
    adam = request.param
    return adam, *weights_after_twenty_updates(pairs, adam)


@pytest.mark.parametrize(
    ("num_devices", "limit"),
    [
        (2, 24),
        pytest.param(1, 24, marks=pytest.mark.slow),
        pytest.param(4, None, marks=pytest.mark.slow),
    ],
)
def test_any_division_of_a_batch_gives_the_same_updates(
    pairs, one_device, num_devices, limit
):
    adam, weights, figures = one_device
    devices = [f"CPU:{i}" for i in range(num_devices)]
    strategy = make_strategy(devices) if num_devices > 1 else None

    others, other_figures = weights_after_twenty_updates(pairs, adam, strategy, limit)

    for a, b in zip(weights, others, strict=True):
        # Adam's epsilon of 1e-9 amplifies the noise of the sums.
        np.testing.assert_allclose(a, b, atol=5e-5 if adam else 1e-6)
    assert {"perplexity", "val_loss", "val_perplexity"} < figures.keys()
    for name, value in figures.items():
        np.testing.assert_allclose(value, other_figures[name], rtol=1e-4)


def test_a_validation_that_is_not_finite_is_told(pairs):
    task = small_task()
    table = task.transformer.embedding.embeddings
    table.assign(np.full(table.shape, np.nan))
    plan = BatchPlan(pairs, 120, seed=0)

    data = make_dataset(plan, tf.distribute.get_strategy(), last=1)
    results = task.evaluate(data, steps=1, verbose=0, return_dict=True)

    assert not np.isfinite(results["loss"])
    assert not np.isfinite(results["perplexity"])
    assert "gradient_norm" not in results


def test_dropout_differs_between_replicas(pairs):
    strategy = make_strategy(["CPU:0", "CPU:1"])
    task = small_task(strategy=strategy, dropout=0.5)
    dropout = task.transformer.source_dropout

    @tf.function
    def masks():
        def one():
            with task.own_seeds():
                return dropout(tf.ones((4, 50)), training=True) > 0

        return strategy.experimental_local_results(strategy.run(one))

    first, second = masks(), masks()

    seeds = strategy.experimental_local_results(dropout.seed_generator.state.value)
    np.testing.assert_array_equal(*seeds)  # A checkpoint has one for all.
    drawn = [mask.numpy() for mask in (*first, *second)]
    for mask, other in itertools.combinations(drawn, 2):
        assert (mask != other).any()
    assert 0.4 < np.mean(drawn) < 0.6


def train(task, pairs, steps, settings, run_dir, strategy=None):
    strategy = strategy or tf.distribute.get_strategy()
    plan = BatchPlan(pairs, settings.batch_tokens, settings.seed)
    return fit(task, plan, plan, steps, settings, run_dir, strategy)


@pytest.mark.parametrize(("num_replicas", "most"), [(1, 120), (4, 30)])
def test_final_scores_take_the_memory_of_one_device(pairs, num_replicas, most):
    shapes = []

    def evaluate(data, steps, **_):
        batches = data.take(steps)
        shapes.extend(batch["source_ids"].shape[1:] for batch in batches)
        return dict.fromkeys(("loss", "perplexity", "accuracy"), 1.0)

    model = types.SimpleNamespace(evaluate=evaluate)
    plan = BatchPlan(pairs, SETTINGS.batch_tokens, SETTINGS.seed)
    score_model(model, plan, SETTINGS, num_replicas)

    assert most / 2 < max(rows * length for rows, length in shapes) <= most


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (["GPU:7"], "CPU:0, CPU:1.*Received: GPU:7"),
        (["CPU:0", "CPU:0"], "must be different .*CPU:0, CPU:0"),
    ],
)
def test_refuses_devices(devices, message):
    with pytest.raises(UserError, match=message):
        make_strategy(devices)


def test_no_device_takes_more_than_its_limit_in_validation_either(
    pairs, tmp_path, monkeypatch
):
    given = []
    monkeypatch.setattr(
        TrainingModel,
        "fit",
        lambda _, data, validation_data, **more: given.extend([data, validation_data]),
    )
    settings = dataclasses.replace(SETTINGS, max_tokens_per_replica=24)

    train(small_task(settings), pairs, 1, settings, tmp_path)

    training, validation = given
    batches = [*training.take(8), *validation]
    assert len(batches) > 8
    counts = set()
    for batch in batches:
        for name in ("source_ids", "labels"):
            count, rows, length = batch[name].shape
            assert rows * length <= 24
            counts.add(count)
    assert len(counts) > 1


def test_a_run_that_diverges_ends_within_ten_updates_more(pairs, tmp_path):
    settings = dataclasses.replace(SETTINGS, steps_per_epoch=60)
    task = small_task(settings)
    table = task.transformer.embedding.embeddings
    table.assign(np.full(table.shape, np.nan))

    with pytest.raises(UserError, match="11 updates in a row, up to 11"):
        train(task, pairs, 60, settings, tmp_path)


def test_the_seed_decides_about_weights():
    settings = [dataclasses.replace(SETTINGS, seed=seed) for seed in (0, 0, 1)]
    weights = [small_task(each).get_weights()[0] for each in settings]

    np.testing.assert_array_equal(weights[0], weights[1])
    assert np.abs(weights[0] - weights[2]).max() > 0.01


def test_options_reach_the_optimizer():
    task = small_task(dataclasses.replace(SETTINGS, clip_norm=0.5, precision="float16"))
    optimizer, variables = task.optimizer, task.trainable_variables

    optimizer.apply([tf.ones(v.shape) * FIRST_LOSS_SCALE for v in variables], variables)

    assert optimizer.loss_scale.numpy() == FIRST_LOSS_SCALE
    moments = [v.numpy() for v in optimizer.variables if "momentum" in v.path]
    norm = np.sqrt(sum(np.sum(moment**2) for moment in moments))
    assert norm == pytest.approx(0.1 * 0.5, rel=1e-4)
