"""Runs that are killed, stopped or damaged end as the one that was not."""

import errno
import json
import os
import pathlib
import shutil
import signal

import pytest
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from tests.helpers.python_subprocess import run_python
from tests.helpers.small_runs import OPTIONS, assert_same_run, refused as refusal
from train.fit import TrainingOptions, make_training_model
from train.monitoring.progress import ProgressLogger
from train.run.run_description import RunDescription
from train.run.run_folder import locked, read_history
from train.run.training_state import TrainingState


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "uninterrupted"
    train_command.main([*corpus, *OPTIONS, "--run-dir", str(run_dir)])
    steps = [row["step"] for row in read_history(run_dir)]
    assert steps == ["6", "12", "18", "24"]
    return run_dir


@pytest.mark.slow
def test_runs_killed_at_any_moment_end_as_the_one_that_was_not(corpus, tmp_path):
    """All are processes of a kind: with eight devices the last bits of sums differ."""
    output = run_python(
        "-m", "tests.helpers.programs.killed_runs", tmp_path, *corpus, *OPTIONS
    )

    assert "continuing after update" in output
    assert "killed at all moments" in output
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    assert scores(tmp_path / "killed") == scores(tmp_path / "whole")
    assert not list(tmp_path.rglob("*.part*"))


def scores(run_dir):
    """Returns what is written of the final model, but its file's digest."""
    return {**json.loads((run_dir / "model.json").read_text()), "sha256": 0}


def test_a_signal_ends_a_run_that_resumes_after_the_last_epoch(
    corpus, uninterrupted, tmp_path, capsys, monkeypatch
):
    before = ProgressLogger.on_train_batch_end

    def send_signal(progress, *args, **kwargs):
        if progress.model.optimizer.iterations.numpy() == 9:
            os.kill(os.getpid(), signal.SIGTERM)
        before(progress, *args, **kwargs)

    arguments = [*corpus, *OPTIONS, "--run-dir", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLogger, "on_train_batch_end", send_signal)
        with pytest.raises(SystemExit) as exit_:
            train_command.main(arguments)

    assert exit_.value.code == 128 + signal.SIGTERM
    assert "The same command resumes" in capsys.readouterr().out
    train_command.main(arguments)
    assert "continuing after update 6" in capsys.readouterr().out
    assert_same_run(tmp_path, uninterrupted)


@pytest.fixture
def copied(uninterrupted, tmp_path):
    run_dir = tmp_path / "copy"
    shutil.copytree(uninterrupted, run_dir)
    return run_dir


@pytest.fixture(scope="module")
def task(uninterrupted):
    description = RunDescription.load(uninterrupted / "arguments.json")
    return make_training_model(
        description.preset,
        description.arguments["vocabulary_size"],
        description.arguments["max_length"],
        TrainingOptions(batch_tokens=64, steps_per_epoch=6),
        tf.distribute.get_strategy(),
    )


@pytest.fixture
def state(task, copied):
    """That of the copy, whose checkpoint of update 24 was not yet read."""
    task.optimizer.iterations.assign(0)
    return TrainingState(task, copied, keep=2)


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "index"])
@pytest.mark.parametrize("part", ["ckpt", "state"])
def test_of_a_damaged_checkpoint_the_one_before_is_taken(
    state, copied, capsys, part, damage
):
    (data,) = copied.glob(f"checkpoints/{part}-24.data*")
    index = copied / "checkpoints" / f"{part}-24.index"
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
    before = contents(copied, "*-24.*")

    assert state.restore() == 18
    assert "ckpt-24 is damaged and left out" in capsys.readouterr().out
    assert [row["step"] for row in state.history] == ["6", "12", "18"]
    assert contents(copied, "*-24.*") == before
    state.on_epoch_end(3, {})  # With another length of an epoch.
    steps = [int(path.stem[5:]) for path in copied.glob("checkpoints/ckpt-*.index")]
    assert max(steps) == 18


def contents(run_dir, pattern):
    paths = (run_dir / "checkpoints").glob(pattern)
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def test_refuses_where_every_checkpoint_is_damaged(state, copied):
    for index in copied.glob("checkpoints/*.index"):
        index.write_bytes(b"")

    with pytest.raises(UserError, match="no checkpoint in .* is whole"):
        state.restore()


@pytest.mark.parametrize("missing", range(1, 6))
def test_a_full_disk_loses_no_checkpoint(state, copied, missing, monkeypatch):
    """Whatever file of the next checkpoint does not fit any more."""
    state.restore()
    before = contents(copied, "*-*")
    renames = missing - 1

    def full(*_, **__):
        nonlocal renames
        renames -= 1
        if renames <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    target = tf.train.Checkpoint if missing == 1 else pathlib.Path
    monkeypatch.setattr(target, "write" if missing == 1 else "replace", full)
    with pytest.raises(OSError, match="No space left"):
        state._states.write(state.updates)

    assert contents(copied, "*-*") == before


def test_a_second_run_in_a_folder_is_refused(corpus, tmp_path, capsys):
    with locked(tmp_path):
        line = refusal(capsys, [*corpus, *OPTIONS, "--run-dir", tmp_path])

    assert f"process {os.getpid()} on " in line
    # The lock of a run that has ended, or was killed, is none.
    with locked(tmp_path):
        pass
