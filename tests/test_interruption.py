"""Runs that are killed, stopped or damaged end as the one that was not."""

import csv
import os
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

import train.__main__ as train_command
from tests.test_train_command import TINY
from tests.test_train_command import refusal
from train.corpus import demo_pairs

OPTIONS = [*TINY, "--steps=24", "--round-steps=6", "--dropout=0.3"]
VOLATILE = ("tokens_per_second", "minutes_left")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    pairs = demo_pairs("validation")
    options = []
    for name, lines in (
        ("train-source", pairs.sources[:60]),
        ("train-target", pairs.targets[:60]),
        ("validation-source", pairs.sources[60:70]),
        ("validation-target", pairs.targets[60:70]),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [f"--{name}", str(folder / name)]
    return options


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
def test_a_run_killed_at_any_moment_ends_as_the_one_that_was_not(
    corpus, uninterrupted, tmp_path
):
    """Twenty random moments, and six just before a file is renamed."""
    run_dir = tmp_path / "killed"
    arguments = [*corpus, *OPTIONS, "--run-dir", str(run_dir)]
    process = start(["-m", "tests.killed_runs", "20", "5", *arguments])

    output, _ = process.communicate(timeout=900)

    assert process.returncode == 0, output
    assert "continuing after update" in output
    assert_same_run(run_dir, uninterrupted)
    assert not list(run_dir.rglob("*.part*"))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_saves_within_an_update_and_says_how_to_go_on(
    corpus, uninterrupted, tmp_path, number, code, capsys, monkeypatch
):
    """The signal comes within a round, whose means must not be lost."""
    from train.run_state import RunState

    on_batch_end = RunState.on_train_batch_end

    def signal_at_the_ninth_update(state, batch, logs=None):
        if state.updates == 9:
            os.kill(os.getpid(), number)
        on_batch_end(state, batch, logs)

    arguments = [*corpus, *OPTIONS, "--run-dir", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(
            RunState, "on_train_batch_end", signal_at_the_ninth_update
        )
        with pytest.raises(SystemExit) as exit_:
            train_command.main(arguments)

    assert exit_.value.code == code
    assert "The same command goes on after update 9" in capsys.readouterr().out
    train_command.main(arguments)
    assert "continuing after update 9" in capsys.readouterr().out
    assert_same_run(tmp_path, uninterrupted)


def test_a_signal_before_the_training_ends_it_with_its_code(
    corpus, tmp_path, capsys, monkeypatch
):
    from train import vocabulary

    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(vocabulary, "learn_vocabulary", interrupted)
    with pytest.raises(SystemExit) as exit_:
        train_command.main([*corpus, *OPTIONS, "--run-dir", str(tmp_path)])

    assert exit_.value.code == 143
    assert "interrupted" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "index"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(
    corpus, uninterrupted, tmp_path, capsys, damage
):
    import shutil

    run_dir = tmp_path / "copy"
    shutil.copytree(uninterrupted, run_dir)
    (data,) = run_dir.glob("checkpoints/ckpt-24.data*")
    if damage == "cut":
        data.write_bytes(data.read_bytes()[:100])
    elif damage == "flip":
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)
    elif damage == "missing":
        data.unlink()
    else:
        index = run_dir / "checkpoints/ckpt-24.index"
        index.write_bytes(index.read_bytes()[:50])

    train_command.main([*corpus, *OPTIONS, "--run-dir", str(run_dir)])

    output = capsys.readouterr().out
    assert "ckpt-24 is damaged and left out" in output
    assert "continuing after update 18" in output
    assert_same_run(run_dir, uninterrupted)


def test_refuses_where_every_checkpoint_is_damaged(
    corpus, uninterrupted, tmp_path, capsys
):
    import shutil

    run_dir = tmp_path / "copy"
    shutil.copytree(uninterrupted, run_dir)
    for index in run_dir.glob("checkpoints/*.index"):
        index.write_bytes(b"")

    line = refusal(capsys, [*corpus, *OPTIONS, "--run-dir", run_dir])

    assert "every checkpoint" in line


def test_a_second_run_in_a_folder_is_refused(corpus, tmp_path, capsys):
    holder = start(
        [
            "-c",
            "import pathlib, time\n"
            "from train.run_folder import locked\n"
            f"with locked(pathlib.Path({str(tmp_path)!r})):\n"
            "    print('held', flush=True)\n"
            "    time.sleep(60)",
        ]
    )
    try:
        while holder.stdout.readline() != "held\n":
            time.sleep(0.01)
        line = refusal(capsys, [*corpus, *OPTIONS, "--run-dir", tmp_path])
    finally:
        holder.kill()
        holder.communicate()

    assert f"process {holder.pid} on " in line
    # The lock of a killed run is none.
    from train.run_folder import locked

    with locked(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / "lock").read_text()
