"""Tests of `train.loop.multi_worker`: two processes that train one model."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from tests.helpers.small_runs import (
    OPTIONS,
    load_weights,
    make_training_pairs,
    weights_after_twenty_updates,
)
from train.fit import make_strategy
from train.loop import multi_worker
from train.run.run_folder import read_history


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
    workers = start_workers([["tests.helpers.programs.cluster_worker", str(path)]] * 2)

    for code, output in finish(workers):
        assert code == 0, output

    together = np.load(path)
    for name, tolerance in (("sgd", 1e-6), ("adam", 5e-5)):
        alone, figures = weights_after_twenty_updates(
            make_training_pairs(), name == "adam"
        )
        for i, array in enumerate(alone):
            np.testing.assert_allclose(together[f"{name}-{i}"], array, atol=tolerance)
        assert "val_perplexity" in figures
        for figure, value in figures.items():
            np.testing.assert_allclose(
                together[f"{name}-{figure}"].ravel(), value, rtol=1e-4
            )


@pytest.mark.slow
def test_a_lost_worker_ends_the_others_and_the_job_goes_on(corpus, tmp_path):
    """Folder and text are the chief's; the other one has and needs none."""
    options = [*corpus, *OPTIONS, "--warmup-steps=400", "--dropout=0"]
    options += ["--steps=80", "--steps-per-epoch=20", "--patience=9"]
    command = ["train", *options, "--run-dir", str(tmp_path / "job")]
    nowhere = ["--train-source=nowhere", "--validation-target=nowhere"]
    command += ["--validate-bleu=2", "--validation-beam-size=1"]
    workers = start_workers([command, [*command, *nowhere]])
    # The chief knows the rounds that it had; the other one cannot.
    again = [o for o in command if not o.startswith("--steps-per-epoch")]
    first = tmp_path / "job" / "checkpoints" / "ckpt-20.index"
    deadline = time.monotonic() + 200
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    workers[1].send_signal(signal.SIGKILL)
    (code, output), _ = finish(workers, 60)

    assert code == 1, output
    assert output.splitlines()[-1].startswith("error: another worker is gone")
    for code, output in finish(start_workers([again, [*again, *nowhere]])):
        assert code == 0, output
        assert "continuing after update" in output
    train_command.main([*options, "--run-dir", str(tmp_path / "alone")])
    runs = tmp_path / "job", tmp_path / "alone"
    job, alone = map(read_history, runs)
    assert [row["step"] for row in job] == ["20", "40", "60", "80"]
    for row, other in zip(job, alone, strict=True):
        for name in ("loss", "perplexity", "val_loss", "gradient_norm"):
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-3)
    models = (load_weights(run / "model.keras") for run in runs)
    for a, b in zip(*models, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.slow
def test_workers_refuse_other_arguments_than_the_chiefs(corpus, tmp_path):
    options = [*corpus, *OPTIONS, "--run-dir", str(tmp_path / "job")]
    other = [*options, "--batch-tokens=72", "--seed=3"]

    for code, output in finish(
        start_workers([["train", *options], ["train", *other]]), 100
    ):
        assert code == 2, output
        assert "These differ: batch_tokens, seed\n" in output


@pytest.mark.slow
@pytest.mark.parametrize("failing", [0, 1])
def test_a_mistake_of_one_worker_ends_the_others(corpus, tmp_path, failing):
    """Whether it is found before a worker joins or after."""
    good = ["train", *corpus, *OPTIONS, "--run-dir", str(tmp_path / "job")]
    bad = [*good, "--steps=0"] if failing else [*good, "--train-source=no"]
    commands = [good, bad] if failing else [bad, good]

    results = finish(start_workers(commands), 90)

    code, output = results.pop(failing)
    assert code == 2, output
    assert "invalid positive" in output or "no such file: no\n" in output
    ((code, output),) = results
    assert code == 1, output
    assert "error: another worker is gone" in output


def test_others_get_what_the_chief_has_in_pieces(monkeypatch, tmp_path):
    sent, chief = [], []
    monkeypatch.setattr(multi_worker, "CHUNK", 16)
    monkeypatch.setattr(multi_worker, "is_chief", lambda: not chief)

    def send(strategy, arrays):
        sent.append(arrays)
        return arrays

    def receive(strategy, arrays):
        theirs = sent.pop(0)
        for mine, other in zip(arrays, theirs, strict=True):
            assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
        return theirs

    arrays = [np.arange(n, dtype="<u2") for n in (0, 7, 8, 9, 500)]
    arrays.append(np.arange(6.0).reshape(2, 3))
    value = {"arrays": arrays, "text": "ñ" * 40}
    monkeypatch.setattr(multi_worker, "broadcast", send)
    assert multi_worker.send_from_chief(None, value, tmp_path / "chief") is value
    assert max(a.nbytes for (a,) in sent[2:]) == 16
    chief.append("another")
    monkeypatch.setattr(multi_worker, "broadcast", receive)

    got = multi_worker.send_from_chief(None, None, tmp_path / "other")

    assert sent == []
    assert not (tmp_path / "chief").exists()
    assert got["text"] == value["text"]
    for array, expected in zip(got["arrays"], arrays, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (tf.errors.InternalError(None, None, "cublas: launch failed"), False),
        (tf.errors.InternalError(None, None, "from remote target /job"), True),
        (tf.errors.UnavailableError(None, None, "Socket closed"), True),
        (tf.errors.ResourceExhaustedError(None, None, "OOM"), False),
    ],
)
def test_an_error_of_this_machine_is_not_one_of_another(
    monkeypatch, capsys, error, gone
):
    config = {"cluster": {"worker": ["a:1", "b:1"]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    raised = pytest.raises(SystemExit if gone else type(error))
    with raised, multi_worker.exit_on_worker_error():
        raise error

    assert ("another worker is gone" in capsys.readouterr().err) == gone


FIRST = {"task": {"type": "worker", "index": 0}}
CLUSTER = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}}


@pytest.mark.parametrize(
    ("config", "chief"),
    [
        ({}, True),
        (FIRST, True),
        ({"task": {"type": "worker", "index": 1}}, False),
        ({"task": {"type": "chief", "index": 0}}, True),
        # The first worker is not the chief if there is one beside it.
        ({**CLUSTER, **FIRST}, False),
        (CLUSTER, True),
    ],
)
def test_the_first_worker_is_the_chief(monkeypatch, config, chief):
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    assert multi_worker.is_chief() == chief


@pytest.mark.parametrize(
    ("config", "call", "message"),
    [
        ("worker 0", multi_worker.is_chief, "TF_CONFIG must be a JSON object"),
        ("[]", multi_worker.is_chief, "TF_CONFIG must be a JSON object"),
        (
            '{"cluster": {"worker": ["a:1", "b:1"]}}',
            lambda: make_strategy(["GPU:1"]),
            "CUDA_VISIBLE.*--devices GPU:1",
        ),
        (
            '{"cluster": {"worker": ["localhost:1"]}, '
            '"task": {"type": "worker", "index": 1}}',
            multi_worker.make_strategy,
            "must name this task in its cluster",
        ),
    ],
)
def test_refuses_another_tf_config(monkeypatch, config, call, message):
    monkeypatch.setenv("TF_CONFIG", config)

    with pytest.raises(UserError, match=message):
        call()
