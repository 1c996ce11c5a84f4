"""Runs that are killed, stopped or damaged end as the one that was not."""

import csv
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from tests.helpers.small_runs import OPTIONS
from tests.helpers.small_runs import refused as refusal
from train.fit import FitSettings
from train.fit import make_task
from train.run import run_folder
from train.run.run_state import RunState

VOLATILE = ("tokens_per_second", "minutes_left")


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "uninterrupted"
    train_command.main([*corpus, *OPTIONS, "--run-dir", str(run_dir)])
    return run_dir


def history(run_dir):
    with (run_dir / "history.csv").open(newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in VOLATILE}
            for row in csv.DictReader(file)
        ]


def assert_same_run(run_dir, other):
    assert history(run_dir) == history(other)
    assert [row["step"] for row in history(run_dir)] == ["6", "12", "18", "24"]
    weights = [
        keras.saving.load_model(folder / "model.keras").get_weights()
        for folder in (run_dir, other)
    ]
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


def start(arguments, **kwargs):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **kwargs,
    )


@pytest.mark.slow
def test_runs_killed_at_any_moment_end_as_the_one_that_was_not(
    corpus, tmp_path
):
    """Twenty random moments, and six just before a file is renamed.

    All runs are of the same kind of process: with the eight devices of this
    one the last bits of a sum may differ.
    """
    arguments = [
        "-m",
        "tests.helpers.killed_runs",
        "5",
        "4",
        "5",
        str(tmp_path),
    ]
    process = start([*arguments, *corpus, *OPTIONS])

    output, _ = process.communicate(timeout=900)

    assert process.returncode == 0, output
    assert "continuing after update" in output
    killed = sorted(path.name for path in tmp_path.iterdir())
    assert killed == [*(f"kills-{i}" for i in range(5)), "renames", "whole"]
    for name in killed:
        assert_same_run(tmp_path / name, tmp_path / "whole")
    assert not list(tmp_path.rglob("*.part*"))


@pytest.mark.parametrize(
    ("method", "update", "number", "code"),
    [
        # Within a round, whose means must not be lost.
        ("on_train_batch_end", 9, signal.SIGTERM, 143),
        # After the last update of a round, which is not validated yet.
        ("on_train_batch_end", 12, signal.SIGINT, 130),
        # In the validation after the last update of all.
        ("on_test_batch_end", 24, signal.SIGTERM, 143),
    ],
)
def test_a_signal_saves_within_an_update_and_says_how_to_go_on(
    corpus,
    uninterrupted,
    tmp_path,
    method,
    update,
    number,
    code,
    capsys,
    monkeypatch,
):
    before = getattr(RunState, method)

    def send_signal(state, batch, logs=None):
        if state.updates == update:
            os.kill(os.getpid(), number)
        before(state, batch, logs)

    arguments = [*corpus, *OPTIONS, "--run-dir", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(RunState, method, send_signal)
        with pytest.raises(SystemExit) as exit_:
            train_command.main(arguments)

    assert exit_.value.code == code
    goes_on = f"The same command goes on after update {update}"
    assert goes_on in capsys.readouterr().out
    train_command.main(arguments)
    assert f"continuing after update {update}" in capsys.readouterr().out
    assert_same_run(tmp_path, uninterrupted)


def test_a_signal_before_the_training_ends_it_with_its_code(
    corpus, tmp_path, capsys, monkeypatch
):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(train_command, "cached_vocabulary", interrupted)
    with pytest.raises(SystemExit) as exit_:
        train_command.main([*corpus, *OPTIONS, "--run-dir", str(tmp_path)])

    assert exit_.value.code == 143
    assert "interrupted" in capsys.readouterr().out


@pytest.fixture
def copied(uninterrupted, tmp_path):
    """A copy of the finished run, and the options that go on with it."""
    run_dir = tmp_path / "copy"
    shutil.copytree(uninterrupted, run_dir)
    return run_dir


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "index"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(
    copied, capsys, damage
):
    (data,) = copied.glob("checkpoints/ckpt-24.data*")
    index = copied / "checkpoints" / "ckpt-24.index"
    content = bytearray(data.read_bytes())
    if damage == "cut":
        data.write_bytes(content[:100])
    elif damage == "flip":
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif damage == "missing":
        data.unlink()
    else:
        index.write_bytes(index.read_bytes()[:50])

    state = restorable_state(copied)

    assert state.restore() == 18
    assert "ckpt-24 is damaged and left out" in capsys.readouterr().out
    assert [row["step"] for row in state.history] == ["6", "12", "18"]
    assert not list(copied.glob("checkpoints/ckpt-24*"))


def restorable_state(run_dir):
    arguments = json.loads((run_dir / "arguments.json").read_text())
    task = make_task(
        run_folder.read_preset(arguments),
        arguments["arguments"]["vocabulary_size"],
        arguments["arguments"]["max_length"],
        FitSettings(batch_tokens=64, round_steps=6),
        tf.distribute.get_strategy(),
    )
    return RunState(task, run_dir, steps=24, keep=2)


def test_refuses_where_every_checkpoint_is_damaged(copied):
    for index in copied.glob("checkpoints/*.index"):
        index.write_bytes(b"")

    with pytest.raises(UserError, match="every checkpoint in .* is damaged"):
        restorable_state(copied).restore()


def test_a_run_goes_on_before_its_damaged_checkpoint(
    corpus, copied, uninterrupted, capsys
):
    index = copied / "checkpoints" / "ckpt-24.index"
    index.write_bytes(index.read_bytes()[:50])

    train_command.main([*corpus, *OPTIONS, "--run-dir", str(copied)])

    assert "continuing after update 18" in capsys.readouterr().out
    assert_same_run(copied, uninterrupted)


@pytest.mark.parametrize("missing", range(1, 4))
def test_a_full_disk_loses_no_checkpoint(copied, missing, monkeypatch):
    """Whatever file of the next checkpoint does not fit any more."""
    state = restorable_state(copied)
    state.restore()
    before = {
        path.name: path.read_bytes()
        for path in (copied / "checkpoints").glob("ckpt-*")
    }
    kinds = {1: "write", 2: "replace", 3: "replace"}
    renames = missing - 1

    def full(*_, **__):
        nonlocal renames
        renames -= 1
        if renames <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    target = state._checkpoint if missing == 1 else pathlib.Path
    monkeypatch.setattr(target, kinds[missing], full)
    with pytest.raises(OSError, match="No space left"):
        state._save()

    for name, content in before.items():
        assert (copied / "checkpoints" / name).read_bytes() == content


def test_ten_bad_updates_in_a_row_end_the_run(copied):
    state = restorable_state(copied)
    optimizer = state._task.optimizer
    state.restore()
    weights = state._task.transformer.get_weights()
    state.set_params({"steps": 99})

    for i in range(10):
        state.on_train_batch_end(i)
        optimizer.apply(
            [tf.fill(v.shape, np.nan) for v in optimizer_variables(state)],
            optimizer_variables(state),
        )

    with pytest.raises(UserError, match="10 updates in a row, up to 34"):
        state.on_train_batch_end(10)
    for a, b in zip(
        weights, state._task.transformer.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def optimizer_variables(state):
    return state._task.trainable_variables


def test_a_second_run_in_a_folder_is_refused(corpus, tmp_path, capsys):
    holder = start(
        [
            "-c",
            "import pathlib, time\n"
            "from train.run.run_folder import locked\n"
            f"with locked(pathlib.Path({str(tmp_path)!r})):\n"
            "    print('held', flush=True)\n"
            "    time.sleep(60)",
        ]
    )
    try:
        assert "held\n" in holder.stdout  # Read until then, or to its end.
        line = refusal(capsys, [*corpus, *OPTIONS, "--run-dir", tmp_path])
    finally:
        holder.kill()
        holder.communicate()

    assert f"process {holder.pid} on " in line
    # The lock of a killed run is none.
    from train.run.run_folder import locked

    with locked(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / "lock").read_text()
