"""Tests of `train.loop.cluster`: two processes that train one model."""

import csv
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

import train.__main__ as train_command
from command_line.errors import UserError
from tests.helpers.small_runs import OPTIONS
from tests.helpers.small_tasks import make_training_pairs
from tests.helpers.small_tasks import weights_after_twenty_updates
from train.fit import make_strategy
from train.loop import cluster


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start_workers(arguments, count=2):
    """Starts processes whose `TF_CONFIG` makes them workers of one job."""
    addresses = [f"localhost:{port}" for port in free_ports(count)]
    workers = []
    for index in range(count):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": addresses}, "task": task}
        workers.append(
            subprocess.Popen(
                [sys.executable, "-m", *arguments[index]],
                env={
                    **os.environ,
                    "TF_CONFIG": json.dumps(config),
                    "CUDA_VISIBLE_DEVICES": "-1",
                    "PYTHONUNBUFFERED": "1",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return workers


def finish(workers, seconds=300):
    """Returns exit codes and outputs; a worker that hangs is killed."""
    results = []
    for worker in workers:
        try:
            output, _ = worker.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            worker.kill()
            output, _ = worker.communicate()
        results.append((worker.returncode, output))
    return results


@pytest.mark.slow
def test_two_workers_take_the_steps_of_one_device(tmp_path):
    path = tmp_path / "weights.npz"
    workers = start_workers([["tests.helpers.cluster_worker", str(path)]] * 2)

    for code, output in finish(workers):
        assert code == 0, output

    together = np.load(path)
    for name, tolerance in (("sgd", 1e-6), ("adam", 5e-5)):
        alone, figures = weights_after_twenty_updates(
            make_training_pairs(), name == "adam"
        )
        for i, array in enumerate(alone):
            np.testing.assert_allclose(
                together[f"{name}-{i}"], array, atol=tolerance
            )
        assert "val_perplexity" in figures
        for figure, value in figures.items():
            np.testing.assert_allclose(
                together[f"{name}-{figure}"].ravel(), value, rtol=1e-4
            )


@pytest.mark.slow
def test_a_lost_worker_ends_the_others_and_the_job_goes_on(corpus, tmp_path):
    """One folder is the chief's; the other worker has none, and needs none."""
    options = [*corpus, *OPTIONS, "--warmup-steps=400", "--dropout=0"]
    options += ["--steps=80", "--round-steps=20"]
    command = ["train", *options, "--run-dir", str(tmp_path / "job")]
    workers = start_workers([command] * 2)
    # The chief knows the rounds that it had; the other one cannot.
    again = [o for o in command if not o.startswith("--round-steps")]
    first = tmp_path / "job" / "checkpoints" / "ckpt-20.index"
    deadline = time.monotonic() + 200
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    workers[1].send_signal(signal.SIGKILL)
    (code, output), _ = finish(workers, 60)

    assert code == 1, output
    assert output.splitlines()[-1].startswith("error: another worker is gone")
    for code, output in finish(start_workers([again] * 2)):
        assert code == 0, output
        assert "continuing after update" in output
    train_command.main([*options, "--run-dir", str(tmp_path / "alone")])
    histories = []
    for name in ("job", "alone"):
        with (tmp_path / name / "history.csv").open(newline="") as file:
            histories.append(list(csv.DictReader(file)))
    assert (tmp_path / "job" / "logs" / "attention").is_dir()
    job, alone = histories
    assert [row["step"] for row in job] == ["20", "40", "60", "80"]
    for row, other in zip(job, alone, strict=True):
        for name in ("loss", "perplexity", "val_loss", "gradient_norm"):
            assert float(row[name]) == pytest.approx(
                float(other[name]), rel=1e-3
            )
    models = [
        keras.saving.load_model(tmp_path / name / "model.keras").get_weights()
        for name in ("job", "alone")
    ]
    for a, b in zip(*models, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.slow
def test_a_signal_to_one_worker_saves_and_ends_all(corpus, tmp_path):
    options = [*corpus, *OPTIONS, "--steps=99999", "--round-steps=50000"]
    command = ["train", *options, "--run-dir", str(tmp_path)]
    workers = start_workers([command] * 2)
    for line in workers[1].stdout:
        if line.startswith("training:"):
            break
    time.sleep(8)  # The first update takes longest.

    workers[1].send_signal(signal.SIGTERM)

    for code, output in finish(workers, 60):
        assert code == 143, output
        assert "The same command goes on after update" in output
    (index,) = (tmp_path / "checkpoints").glob("ckpt-*.index")
    assert 0 < int(index.stem[5:]) < 50_000


@pytest.mark.slow
def test_workers_refuse_another_text_than_the_chiefs(corpus, tmp_path):
    options = [*corpus, *OPTIONS, "--run-dir", str(tmp_path / "job")]
    text = pathlib.Path(options[1]).read_text()
    changed = tmp_path / "other.txt"
    changed.write_text(text.replace("a", "o"))
    other = [options[0], str(changed), *options[2:]]

    for code, output in finish(
        start_workers([["train", *options], ["train", *other]]), 100
    ):
        assert code == 2, output
        assert "These differ: train, tokenizer\n" in output


@pytest.mark.parametrize(
    ("config", "chief"),
    [
        ({}, True),
        ({"task": {"type": "worker", "index": 0}}, True),
        ({"task": {"type": "worker", "index": 1}}, False),
        ({"task": {"type": "chief", "index": 0}}, True),
    ],
)
def test_the_first_worker_is_the_chief(monkeypatch, config, chief):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    assert cluster.is_chief() == chief


def test_a_worker_is_no_chief_where_there_is_one(monkeypatch):
    config = {
        "cluster": {"chief": ["a:1"], "worker": ["b:1"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    assert not cluster.is_chief()
    assert cluster.is_multi_worker()


@pytest.mark.parametrize("config", ["worker 0", "[]"])
def test_refuses_a_tf_config_that_is_no_json_object(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)

    with pytest.raises(UserError, match="TF_CONFIG must be a JSON object"):
        cluster.is_chief()


def test_the_machines_show_the_devices(monkeypatch):
    config = {"cluster": {"worker": ["a:1", "b:1"]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    with pytest.raises(UserError, match="CUDA_VISIBLE.*--devices GPU:1"):
        make_strategy(["GPU:1"])


def test_refuses_a_task_that_is_not_in_the_cluster(monkeypatch):
    config = {
        "cluster": {"worker": ["localhost:1"]},
        "task": {"type": "worker", "index": 1},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    with pytest.raises(UserError, match="must name this task in its cluster"):
        cluster.make_strategy()
