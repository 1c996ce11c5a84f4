"""Tests of `train.fit`, `train.watch.progress` and `train.run.checkpoints`."""

import csv
import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from keras_transformer import SmoothedCrossentropy
from tests.helpers.small_tasks import SETTINGS
from tests.helpers.small_tasks import VOCABULARY_SIZE
from tests.helpers.small_tasks import make_training_pairs
from tests.helpers.small_tasks import preset
from tests.helpers.small_tasks import weights_after_twenty_updates
from train.data.batches import BatchPlan
from train.data.batches import make_dataset
from train.fit import fit
from train.fit import make_strategy
from train.fit import make_task
from train.run.checkpoints import average_checkpoints
from train.run.run_state import RunState
from train.watch.attention_pictures import AttentionPictures
from train.watch.progress import Progress


@pytest.fixture(scope="module")
def pairs():
    return make_training_pairs()


def train(pairs, run_dir, strategy=None, steps=6, pictures=None, **changes):
    strategy = strategy or tf.distribute.get_strategy()
    task = make_task(preset(**changes), VOCABULARY_SIZE, 16, SETTINGS, strategy)
    state = fit(
        *(task, pairs, pairs, steps, SETTINGS, strategy, run_dir),
        pictures=pictures,
    )
    return task, state


@pytest.fixture(scope="module")
def uninterrupted(pairs, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("uninterrupted")
    return *train(pairs, run_dir, dropout=0.3), run_dir


def test_the_loss_is_the_smoothed_crossentropy_of_a_token(pairs):
    changes = {"label_smoothing": 0.2}
    strategy = tf.distribute.get_strategy()
    task = make_task(preset(**changes), VOCABULARY_SIZE, 16, SETTINGS, strategy)
    batch = BatchPlan(pairs, 120, 0).batch(0)
    names = ("source_ids", "target_ids", "labels", "num_tokens")
    batch = dict(zip(names, batch, strict=True))
    variables = task.transformer.trainable_variables

    with tf.GradientTape(persistent=True) as tape:
        own = tf.reduce_sum(task.token_losses(batch, training=False))
        logits = task.transformer(batch)
        expected = SmoothedCrossentropy(0.2, reduction="sum")(
            batch["labels"], logits
        )

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
        task.get_metrics_result()["perplexity"],
        np.exp(np.mean(gold)),
        rtol=1e-4,
    )


@pytest.fixture(scope="module", params=[False, True], ids=["sgd", "adam"])
def one_device(request, pairs):
    """Whether with Adam, and what one device does with whole batches."""
    adam = request.param
    return adam, *weights_after_twenty_updates(pairs, adam)


@pytest.mark.parametrize(
    ("num_devices", "micro_batches"), [(1, 2), (1, 5), (2, 1), (4, 1), (2, 2)]
)
def test_any_division_of_a_batch_gives_the_same_updates(
    pairs, one_device, num_devices, micro_batches
):
    adam, weights, figures = one_device
    devices = [f"CPU:{i}" for i in range(num_devices)]
    strategy = make_strategy(devices) if num_devices > 1 else None

    others, other_figures = weights_after_twenty_updates(
        pairs, adam, strategy, micro_batches
    )

    for a, b in zip(weights, others, strict=True):
        # Adam's epsilon of 1e-9 amplifies the noise of the sums.
        np.testing.assert_allclose(a, b, atol=5e-5 if adam else 1e-6)
    assert {"perplexity", "val_loss", "val_perplexity"} < figures.keys()
    for name, value in figures.items():
        np.testing.assert_allclose(value, other_figures[name], rtol=1e-4)


def test_a_validation_that_is_not_finite_is_told(pairs):
    strategy = tf.distribute.get_strategy()
    task = make_task(preset(), VOCABULARY_SIZE, 16, SETTINGS, strategy)
    table = task.transformer.embedding.embeddings
    table.assign(np.full(table.shape, np.nan))
    plan = BatchPlan(pairs, 120, seed=0)

    results = task.evaluate(
        make_dataset(plan, strategy, last=1),
        steps=1,
        verbose=0,
        return_dict=True,
    )

    assert not np.isfinite(results["loss"])
    assert not np.isfinite(results["perplexity"])
    assert "gradient_norm" not in results


def test_the_divisions_are_uneven_and_leave_rows_of_padding(pairs):
    """The test above would pass with less if they were not."""
    plan = BatchPlan(pairs, 120, seed=0)
    tokens, empty = [], 0
    for j in range(20):
        parts = [plan.batch(j, k, 5)[2] for k in range(5)]
        tokens += [[(labels != 0).sum() for labels in parts]]
        empty += sum((labels == 0).all(axis=1).any() for labels in parts)

    assert empty > 0
    assert max(max(t) - min(t) for t in tokens) > 15


def test_dropout_differs_between_replicas(pairs):
    strategy = make_strategy(["CPU:0", "CPU:1"])
    task = make_task(
        preset(dropout=0.5), VOCABULARY_SIZE, 16, SETTINGS, strategy
    )
    dropout = task.transformer.source_dropout

    @tf.function
    def masks():
        def one():
            return dropout(tf.ones((4, 50)), training=True) > 0

        return strategy.experimental_local_results(strategy.run(one))

    first, second = masks(), masks()

    drawn = [mask.numpy() for mask in (*first, *second)]
    for mask, other in itertools.combinations(drawn, 2):
        assert (mask != other).any()
    assert 0.4 < np.mean(drawn) < 0.6


def test_a_run_that_stopped_ends_as_the_one_that_did_not(
    pairs, tmp_path, uninterrupted
):
    # Nor do pictures change anything, which that one did without.
    folder = tmp_path / "logs" / "attention"
    pictures = AttentionPictures(
        [9, 5, 1], [6, 1], lambda ids: "abc"[: len(ids)], folder
    )
    train(pairs, tmp_path, steps=3, pictures=pictures, dropout=0.3)
    task, _ = train(pairs, tmp_path, steps=6, pictures=pictures, dropout=0.3)

    assert len(list(folder.iterdir())) == 2
    expected, _, run_dir = uninterrupted
    for a, b in zip(
        task.transformer.get_weights(),
        expected.transformer.get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    columns = []
    for folder in (tmp_path, run_dir):
        with (folder / "history.csv").open() as file:
            rows = list(csv.DictReader(file))
        columns.append([(r["step"], r["loss"], r["val_loss"]) for r in rows])
    assert columns[0] == columns[1]
    assert [step for step, *_ in columns[0]] == ["3", "6"]


def test_history_tells_what_the_progress_bar_shows(uninterrupted):
    *_, run_dir = uninterrupted
    with (run_dir / "history.csv").open() as file:
        row = list(csv.DictReader(file))[-1]

    assert {
        "loss",
        "perplexity",
        "accuracy",
        "val_perplexity",
        "learning_rate",
        "tokens_per_second",
    } <= set(row)
    assert float(row["tokens_per_second"]) > 0
    assert float(row["val_perplexity"]) > 1
    assert list((run_dir / "logs").rglob("events.out.*"))


def test_training_stops_at_the_last_update_within_a_round(pairs, tmp_path):
    task, _ = train(pairs, tmp_path, steps=4)

    assert int(task.optimizer.iterations) == 4


def test_the_average_is_the_mean_of_the_checkpoints(uninterrupted):
    task, state, _ = uninterrupted
    kept = []
    for path in state.checkpoints:
        state.restore(path)
        kept.append(task.transformer.get_weights())

    averaged = average_checkpoints(task.transformer, state.checkpoints)

    assert len(kept) == 2
    for mean, *weights in zip(averaged.get_weights(), *kept, strict=True):
        np.testing.assert_allclose(mean, np.mean(weights, axis=0), atol=1e-7)


def test_bfloat16_keeps_weights_in_float32(pairs):
    settings = dataclasses.replace(SETTINGS, precision="bfloat16")
    strategy = tf.distribute.get_strategy()
    task = make_task(preset(), VOCABULARY_SIZE, 16, settings, strategy)

    assert task.transformer.compute_dtype == "bfloat16"
    assert {w.dtype for w in task.transformer.trainable_weights} == {"float32"}


def test_refuses_a_device_that_is_not_there():
    with pytest.raises(UserError, match="CPU:0, CPU:1.*Received: GPU:7"):
        make_strategy(["GPU:7"])


def test_callbacks_read_the_counts_of_replicas(tmp_path):
    strategy = make_strategy(["CPU:0", "CPU:1"])
    task = make_task(preset(), VOCABULARY_SIZE, 16, SETTINGS, strategy)
    task.means["loss"].count.assign(600)
    progress = Progress(steps=9)
    progress.set_model(task)
    logs = {}

    progress.on_epoch_begin(0)
    progress.on_train_batch_begin(0)
    task.means["loss"].count.assign(1200)
    task.optimizer.iterations.assign(4)
    progress.on_train_batch_end(0, logs)

    assert logs["tokens_per_second"] > 0
    assert logs["minutes_left"] > 0
    state = RunState(task, tmp_path, steps=9, keep=1)
    state.set_params({"steps": 9})
    state.on_train_batch_end(0)
    assert state.updates == 4


@pytest.mark.parametrize("num_replicas", [1, 2])
@pytest.mark.parametrize("limit", [None, 13, 40, 500])
def test_a_device_never_takes_more_than_its_limit(pairs, num_replicas, limit):
    settings = dataclasses.replace(SETTINGS, max_tokens_per_replica=limit)
    plan = BatchPlan(pairs, settings.batch_tokens, 0)

    parts = num_replicas * settings.micro_batches(plan, num_replicas)

    positions = [
        -(-rows // parts) * max(lengths) for rows, *lengths in plan.shapes
    ]
    longest = max(max(lengths) for _, *lengths in plan.shapes)
    assert max(positions) <= max(limit or 10_000, longest)
    assert (parts == num_replicas) == (limit in (None, 500))


def test_refuses_a_device_twice():
    with pytest.raises(UserError, match="must be different .*CPU:0, CPU:0"):
        make_strategy(["CPU:0", "CPU:0"])
