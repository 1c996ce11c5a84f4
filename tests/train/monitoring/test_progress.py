import re

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.helpers.small_runs import SETTINGS, make_training_pairs, small_task
from train.data.batch_plan import BatchPlan
from train.fit import fit
from train.run.run_folder import read_history

LINE = (
    r"{}/5 updates, \d+ min left, loss \d+\.\d{{3}}, perplexity [\d.]+, "
    r"accuracy \d+\.\d%, [\d,]+ tokens/s"
)
VALIDATION = r", validation loss \d+\.\d{{3}}, perplexity [\d.]+, accuracy \d+\.\d%"


def train(run_dir):
    """Makes five updates, in epochs of three and two."""
    plan = BatchPlan(make_training_pairs(), SETTINGS.batch_tokens, SETTINGS.seed)
    strategy = tf.distribute.get_strategy()
    fit(small_task(), plan, plan, 5, SETTINGS, run_dir, strategy)


def test_a_log_file_gets_one_line_an_epoch(tmp_path, capsys):
    train(tmp_path)

    assert re.fullmatch(
        "\n".join((LINE + VALIDATION).format(step) for step in (3, 5)) + "\n",
        capsys.readouterr().out,
    )
    rows = read_history(tmp_path)
    assert {"learning_rate", "gradient_norm", "skipped"} < rows[0].keys()
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


def test_a_terminal_gets_a_line_that_fits_and_changes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")

    train(tmp_path)

    _, during, after, *_ = re.split("\r", capsys.readouterr().out)
    assert re.match(r"1/5 updates, \d+ min left, loss ", during)
    assert len(during) == 59
    assert re.fullmatch(r"\x1b\[K" + (LINE + VALIDATION).format(3) + "\n", after)
