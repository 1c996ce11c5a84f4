"""Tests of `callbacks_across_fits`, and of `fit(callbacks=...)`."""

import csv
import dataclasses

import keras
import tensorflow as tf

from tests.helpers.small_models import SETTINGS, make_training_pairs, small_task
from train.fit import FitContext, FitData, FitOptions, fit

PAIRS = make_training_pairs()


class Added(keras.callbacks.Callback):
    """Counts its calls, and adds a value to the logs of an epoch."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def on_train_begin(self, logs=None):
        self.calls.append("begin")

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append("batch")

    def on_epoch_end(self, epoch, logs=None):
        logs["added"] = 7.0 + epoch

    def on_test_end(self, logs=None):
        self.calls.append("test")

    def on_train_end(self, logs=None):
        self.calls.append("end")


def train(run_dir, steps, *callbacks):
    settings = dataclasses.replace(SETTINGS, steps_per_epoch=2)
    strategy = tf.distribute.get_strategy()
    task = small_task(settings, strategy)
    options = FitOptions(steps, settings)
    context = FitContext(run_dir, strategy)
    return fit(task, FitData(PAIRS, PAIRS), options, context, callbacks)


def test_callbacks_of_the_caller_see_one_training(tmp_path):
    """It takes two calls of `fit`: the last epoch is a short one."""
    path, added = tmp_path / "log.csv", Added()

    # Keras's own file would begin again with the second call.
    best = train(tmp_path, 3, added, keras.callbacks.CSVLogger(path))

    assert added.calls[0] == "begin"
    assert added.calls[-1] == "end"
    counts = {name: added.calls.count(name) for name in set(added.calls)}
    assert counts == {"begin": 1, "batch": 3, "test": 2, "end": 1}
    assert [row["added"] for row in best.state.history] == [7.0, 8.0]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1"]
    assert [float(row["val_loss"]) for row in rows] == [
        row["val_loss"] for row in best.state.history
    ]


def test_a_callback_of_the_caller_ends_the_run(tmp_path):
    class End(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

    best = train(tmp_path, 3, End())

    assert best.state.updates == 2
