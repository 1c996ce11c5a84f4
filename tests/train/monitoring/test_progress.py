import functools
import re
import types

import keras
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.helpers.small_runs import SETTINGS, make_training_pairs, small_task
from train.data.batch_plan import BatchPlan
from train.fit import fit
from train.monitoring.progress import ProgressLine
from train.run.run_folder import read_history

LINE = (
    r"{}/5 updates, \d+ min left, loss \d+\.\d{{3}}, perplexity [\d.]+, "
    r"accuracy \d+\.\d%, [\d,]+ tokens/s"
)
VALIDATION = r", validation loss \d+\.\d{{3}}, perplexity [\d.]+, accuracy \d+\.\d%"


class Added(keras.callbacks.Callback):
    """Counts its calls, and adds a value to the logs of an epoch."""

    def __init__(self):
        super().__init__()
        self.calls = []
        for name in ("train_begin", "train_batch_end", "test_end", "train_end"):
            setattr(self, f"on_{name}", functools.partial(self.note, name))

    def note(self, name, *args, **kwargs):
        self.calls.append(name)

    def on_epoch_end(self, epoch, logs=None):
        logs["added"] = 7.0 + epoch


def test_a_log_file_gets_one_line_an_epoch(tmp_path, capsys):
    """Of five updates, in epochs of three and two, which callbacks see as one `fit`."""
    plan = BatchPlan(make_training_pairs(), SETTINGS.batch_tokens, SETTINGS.seed)
    strategy, added = tf.distribute.get_strategy(), Added()

    fit(small_task(), plan, plan, 5, SETTINGS, tmp_path, strategy, None, [added])

    assert re.fullmatch(
        "\n".join((LINE + VALIDATION).format(step) for step in (3, 5)) + "\n",
        capsys.readouterr().out,
    )
    rows = read_history(tmp_path)
    assert {"learning_rate", "gradient_norm", "skipped"} < rows[0].keys()
    assert [row["added"] for row in rows] == ["7.0", "8.0"]
    updates = ["train_batch_end"] * 5
    assert added.calls == [
        *("train_begin", *updates[:3], "test_end"),
        *(*updates[3:], "test_end", "train_end"),
    ]
    # The curves of TensorBoard have the update as axis.
    for folder, column in (("train", "loss"), ("validation", "val_loss")):
        events = EventAccumulator(str(tmp_path / "logs" / folder)).Reload()
        found = [
            (e.step, float(tf.make_ndarray(e.tensor_proto)))
            for e in events.Tensors("loss")
        ]
        assert found == [
            (int(row["step"]), pytest.approx(float(row[column]))) for row in rows
        ]
        assert not [name for name in events.Tags()["tensors"] if "epoch" in name]


def test_a_terminal_gets_a_line_that_fits_and_changes(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    line = ProgressLine(5)
    optimizer = types.SimpleNamespace(updates=tf.constant(1), iterations=None)
    line.set_model(types.SimpleNamespace(optimizer=optimizer))
    logs = {"loss": 4.0, "perplexity": 54.6, "accuracy": 0.25, "minutes_left": 3.0}
    logs["tokens_per_second"] = 12_345.0

    line.on_train_batch_end(0, logs)
    line.on_epoch_end(0, {**logs, "val_loss": 2.0})

    whole = "1/5 updates, 3 min left, loss 4.000, perplexity 54.6, accuracy 25.0%, "
    whole += "12,345 tokens/s"
    printed = f"\r{whole[:59]}\r\x1b[K{whole}, validation loss 2.000\n"
    assert capsys.readouterr().out == printed
