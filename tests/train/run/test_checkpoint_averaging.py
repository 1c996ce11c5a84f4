import json
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from tests.helpers.error_capture import refusal as refused
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from tests.helpers.small_runs import VOCABULARY_SIZE, preset, small_task
from train import average
from train.run.checkpoint_averaging import choose_weights, make_float32_copy
from train.run.run_folder import step_of
from train.run.training_state import TrainingState

SIZES = {3: 7.0, 6: 3.0, 9: 2.0**24, 12: 1.0, 15: -(2.0**24)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of five rounds with weights that only float64 can add up."""
    run_dir = tmp_path_factory.mktemp("averaged")
    task = small_task()
    state = TrainingState(task, run_dir, keep=3)
    random = np.random.default_rng(4)
    for step, size in SIZES.items():
        for weight in task.transformer.trainable_weights:
            noise = random.integers(0, 2, weight.shape)
            weight.assign(size * (1 + noise))
        task.optimizer.iterations.assign(step)
        state.on_epoch_end(step // 3 - 1, {"loss": 1.0, "val_loss": 1.0})
    write_arguments(run_dir)
    return run_dir


def write_arguments(run_dir, **more):
    """Writes the description of a run, as far as averaging needs it."""
    sizes = {"vocabulary_size": VOCABULARY_SIZE, "max_length": 16}
    description = {
        "arguments": {**sizes, **more},
        "preset": {"description": "", **preset().hyperparameters()},
        "steps_per_epoch": 3,
        "packages": {},
    }
    (run_dir / "arguments.json").write_text(json.dumps(description))


def weights_in(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    value = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = reader.get_variable_to_shape_map()
    count = sum("/_trainable_variables/" in name for name in names)
    return [
        reader.get_tensor(f"optimizer/_trainable_variables/{i}{value}")
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("which", "paths"),
    [
        (["--last", "3"], [f"checkpoints/ckpt-{step}" for step in (9, 12, 15)]),
        (["--steps", "15", "9"], ["checkpoints/ckpt-15", "checkpoints/ckpt-9"]),
    ],
)
def test_the_command_writes_the_mean_in_float64(
    finished, tmp_path, capsys, which, paths
):
    output = tmp_path / "mean.keras"
    command = ["--run-dir", str(finished), "--output", str(output)]

    average.main([*command, *which])

    assert [path.name for path in tmp_path.iterdir()] == ["mean.keras"]
    model = keras.saving.load_model(output)
    kept = [weights_in(finished / path) for path in paths]
    for mean, *weights in zip(model.get_weights(), *kept, strict=True):
        expected = np.mean(np.asarray(weights, np.float64), axis=0)
        np.testing.assert_array_equal(mean, expected.astype(np.float32))
    assert model.sequence_length == 16
    names = ", ".join(str(finished / path) for path in paths)
    assert f"is the mean of {names}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--last", "4"], "--last must be .* there, 9, 12, 15. Received: 4"),
        (["--steps", "9", "3"], "--steps must .* there, 9, 12, 15. Received: 9 3"),
        (["--steps", "9", "9"], "different ones of .* Received: 9 9"),
        (["--last", "1", "--output", "mean.h5"], "end in .keras. .*mean.h5"),
        (
            ["--last", "1", "--run-dir", "nowhere"],
            "folder of a run. Received: nowhere, which has no arguments.json",
        ),
    ],
)
def test_mistakes_end_in_one_line(
    finished, tmp_path, monkeypatch, capsys, changes, message
):
    monkeypatch.chdir(tmp_path)

    assert re.search(message, refusal(capsys, finished, *changes))
    assert not list(tmp_path.iterdir())


def refusal(capsys, run_dir, *arguments):
    command = ["--run-dir", str(run_dir), "--output", "mean.keras"]
    return refused(capsys, average.main, [*command, *arguments])


@pytest.fixture
def run_dir(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(finished, tmp_path / "run")


def test_what_cannot_be_read_is_named(run_dir, capsys):
    data = run_dir / "checkpoints" / "ckpt-15.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    assert "ckpt-15 holds no weights of" in refusal(capsys, run_dir, "--last", "1")

    description = json.loads((run_dir / "arguments.json").read_text())
    description["preset"]["intermediate_dim"] = 25
    (run_dir / "arguments.json").write_text(json.dumps(description))
    line = refusal(capsys, run_dir, "--steps", "12")
    assert "ckpt-12 holds no weights of this run's model: " in line

    shutil.rmtree(run_dir / "checkpoints")
    line = refusal(capsys, run_dir, "--steps", "12")
    assert "the checkpoints there, none" in line
    assert "the checkpoints there, none" in refusal(capsys, run_dir, "--last", "1")


def test_the_last_two_checkpoints_alone_keep_the_whole_state(finished, tmp_path):
    shutil.copytree(finished / "checkpoints", tmp_path / "checkpoints")
    folder = tmp_path / "checkpoints"
    names = sorted(path.stem for path in folder.glob("*.index"))
    assert names == ["ckpt-12", "ckpt-15", "ckpt-9", "state-12", "state-15"]
    sizes = [
        next(folder.glob(f"{name}.data*")).stat().st_size
        for name in ("ckpt-15", "state-15")
    ]
    assert sizes[1] > 1.9 * sizes[0]  # Adam's two moments.

    # Where both states are lost, the weights are not.
    for path in folder.glob("state-*"):
        path.unlink()
    with pytest.raises(UserError, match="is whole.* There are 9, 12, 15"):
        TrainingState(small_task(), tmp_path, keep=3).restore()


@pytest.fixture(scope="module")
def model():
    return make_float32_copy(small_task().transformer)


def test_the_float32_copy_of_a_subclass_has_its_overrides():
    custom = CustomOutputModel(11, preset().architecture, dtype="bfloat16")

    copied = make_float32_copy(custom)

    assert copied.head.kernel.dtype == "float32"


@pytest.mark.parametrize(
    ("mean_accuracy", "alone_accuracy", "chosen"),
    [(0.2, 0.1, [9, 12, 15]), (0.2, 0.2, [9, 12, 15]), (0.1, 0.2, [15])],
)
def test_the_final_model_is_the_better_of_the_mean_and_the_last(
    finished, model, mean_accuracy, alone_accuracy, chosen
):
    prefixes = [str(finished / f"checkpoints/ckpt-{n}") for n in (9, 12, 15)]
    mean, alone = (
        np.mean([weights_in(p)[0] for p in paths], 0, np.float64).astype(np.float32)
        for paths in (prefixes, prefixes[-1:])
    )

    def score():
        is_mean = np.array_equal(model.get_weights()[0], mean)
        assert is_mean or np.array_equal(model.get_weights()[0], alone)
        return {"accuracy": mean_accuracy if is_mean else alone_accuracy}

    paths, scores, _ = choose_weights(model, prefixes, score)

    assert [step_of(path) for path in paths] == chosen
    is_mean = len(chosen) > 1
    np.testing.assert_array_equal(model.get_weights()[0], mean if is_mean else alone)
    assert scores["accuracy"] == (mean_accuracy if is_mean else alone_accuracy)


def test_the_best_is_compared_with_the_mean_around_it(finished, model):
    prefixes = [str(finished / f"checkpoints/ckpt-{n}") for n in (9, 12, 15)]
    scores = [{"accuracy": 0.1}, {"accuracy": 0.2}]

    paths, _, _ = choose_weights(model, prefixes, lambda: scores.pop(0), best=12)

    assert paths == prefixes[1:2]
    for a, b in zip(model.get_weights(), weights_in(prefixes[1]), strict=True):
        np.testing.assert_array_equal(a, b)
