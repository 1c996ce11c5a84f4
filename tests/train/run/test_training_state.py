"""Tests of `train.run.training_state`: plain Keras, and several workers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Transformer
from tests.helpers.small_models import VOCABULARY_SIZE, preset, small_task
from train.loop import multi_worker
from train.run.run_folder import read_history, saved_steps
from train.run.training_state import TrainingState


def make_dataset():
    """Random ids, the same for source, target and labels."""
    random = np.random.default_rng(0)
    ids = random.integers(4, VOCABULARY_SIZE, (3, 2, 5), np.int32)
    names = ("source_ids", "target_ids")
    rows = tf.data.Dataset.from_tensor_slices(ids)
    return rows.map(lambda x: (dict.fromkeys(names, x), x))


def train_plainly(run_dir, epochs, data, metrics=()):
    """Trains a Transformer with an optimizer of Keras, three updates each."""
    keras.utils.set_random_seed(0)
    shape = {"sequence_length": 8}
    model = Transformer.from_preset(preset(), VOCABULARY_SIZE, **shape)
    model.build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.1)
    model.compile(optimizer, loss, metrics=[*metrics], jit_compile=False)
    state = TrainingState(model, run_dir, keep=1)
    begin = state.restore() // 3
    when = {"initial_epoch": begin, "epochs": epochs, "shuffle": False}
    model.fit(data, callbacks=[state], verbose=0, **when)
    return model.variables, model.optimizer.variables


def test_a_plain_transformer_resumes_with_any_optimizer(tmp_path):
    data = make_dataset()
    whole = train_plainly(tmp_path / "whole", 2, data)
    train_plainly(tmp_path / "two", 1, data)
    assert list(saved_steps(tmp_path / "two" / "checkpoints")) == [3]

    resumed = train_plainly(tmp_path / "two", 2, data)

    rows = read_history(tmp_path / "two")
    assert [row["step"] for row in rows] == ["3", "6"]
    assert rows == read_history(tmp_path / "whole")
    for parts in zip(whole, resumed, strict=True):
        for a, b in zip(*parts, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_epoch_that_was_killed_in_its_validation_gets_its_row(tmp_path):
    data = make_dataset()
    train_plainly(tmp_path / "whole", 2, data)
    train_plainly(tmp_path / "two", 1, data)
    (tmp_path / "two" / "history.csv").unlink()

    train_plainly(tmp_path / "two", 2, data)

    assert read_history(tmp_path / "two") == read_history(tmp_path / "whole")


def test_metrics_of_keras_are_missing_in_the_row_of_a_killed_epoch(tmp_path):
    data = make_dataset()
    train_plainly(tmp_path, 1, data, ["sparse_categorical_accuracy"])
    (tmp_path / "history.csv").unlink()

    train_plainly(tmp_path, 2, data, ["sparse_categorical_accuracy"])

    first, second = read_history(tmp_path)
    assert (first["step"], second["step"]) == ("3", "6")
    assert float(first["loss"]) > 0
    assert not first["sparse_categorical_accuracy"]
    assert 0 <= float(second["sparse_categorical_accuracy"]) <= 1


def test_refuses_data_of_unknown_length(tmp_path):
    """Keras counts three batches as four updates."""
    data = make_dataset().filter(lambda inputs, labels: True)

    with pytest.raises(ValueError, match="know the number of batches.*unknown"):
        train_plainly(tmp_path, 1, data)


def test_no_worker_writes_a_checkpoint_that_the_chief_has(tmp_path, monkeypatch):
    """Its metrics are sums over the workers: all have to write it, or none."""
    sent = []

    def broadcast(strategy, arrays):
        sent.append(arrays)
        return sent[0]

    monkeypatch.setattr(multi_worker, "broadcast", broadcast)
    task = small_task()

    def start(worker):
        (tmp_path / worker).mkdir(exist_ok=True)
        task.optimizer.iterations.assign(0)
        state = TrainingState(task, tmp_path / worker, keep=1)
        state.set_params({"steps": 1})
        return state

    lost = start("chief")
    task.optimizer.iterations.assign(3)
    lost.on_train_batch_end(0)  # The epoch has no row yet.
    for worker in ("chief", "other"):
        state = start(worker)
        state.restore()
        assert state.share(tf.distribute.get_strategy()) == 3
        states = state._states
        monkeypatch.setattr(states, "write", lambda step: pytest.fail("wrote"))

        state.on_epoch_end(0, {"loss": 1.0})

        assert len(state.history) == 1
