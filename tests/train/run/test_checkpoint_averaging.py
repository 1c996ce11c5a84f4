"""Tests of checkpoint averaging and of the best checkpoints."""

import json
import pathlib
import re
import shutil
import types
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from tests.helpers.custom_models import CustomOutputModel
from tests.helpers.error_capture import refusal as refused
from tests.helpers.small_models import VOCABULARY_SIZE, preset, small_task
from train import average
from train.run.best_checkpoints import BestCheckpoints, ValidationOptions, best_steps
from train.run.checkpoint_averaging import choose_weights, make_float32_copy
from train.run.run_folder import saved_steps, step_of
from train.run.training_state import TrainingState

# Losses of the validation set after each round of three updates.
LOSSES = {3: 5.0, 6: 2.0, 9: 4.0, 12: 3.0, 15: 2.5}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of five rounds with weights that only float64 can add up."""
    run_dir = tmp_path_factory.mktemp("averaged")
    task = small_task()
    state = TrainingState(task, run_dir, keep=3)
    best = best_of(state, run_dir, keep_best=2)
    random = np.random.default_rng(4)
    for (step, loss), size in zip(
        LOSSES.items(), (7.0, 3.0, 2.0**24, 1.0, -(2.0**24)), strict=True
    ):
        for weight in task.transformer.trainable_weights:
            noise = random.integers(0, 2, weight.shape)
            weight.assign(size * (1 + noise))
        task.optimizer.iterations.assign(step)
        state.on_epoch_end(step // 3 - 1, {"loss": 1.0, "val_loss": loss})
        best.on_epoch_end(step // 3 - 1)
    write_arguments(run_dir)
    return run_dir


def write_arguments(run_dir, **more):
    """Writes the description of a run, as far as averaging needs it."""
    sizes = {"vocabulary_size": VOCABULARY_SIZE, "max_length": 16}
    description = {
        "arguments": {**sizes, **more},
        "preset": {"description": "", **preset().hyperparameters()},
        "steps_per_epoch": 3,
    }
    (run_dir / "arguments.json").write_text(json.dumps(description))


def weights_in(prefix):
    """Reads the weights of a checkpoint, without any model."""
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
        (["--best", "2"], ["best/ckpt-6", "best/ckpt-15"]),
        (["--steps", "15", "6"], ["checkpoints/ckpt-15", "best/ckpt-6"]),
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
    with zipfile.ZipFile(output) as file:
        assert json.loads(file.comment) == {
            "checkpoints": [path.split("/")[1] for path in paths]
        }
    names = ", ".join(str(finished / path) for path in paths)
    assert f"is the mean of {names}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--last", "4"], "--last must be .* there, 9, 12, 15. Received: 4"),
        (["--best", "3"], "--best must be .* there, 6, 15. Received: 3"),
        (["--steps", "9", "3"], "--steps must .* 6, 9, 12, 15. Received: 9 3"),
        (["--steps", "9", "9"], "different ones of .* Received: 9 9"),
        (["--last", "1", "--best", "1"], "not allowed with"),
        (["--last", "1", "--output", "mean.h5"], "end in .keras. .*mean.h5"),
        (
            ["--last", "1", "--run-dir", "nowhere"],
            "folder of a run. Received: nowhere, which has no arguments.json",
        ),
        (
            ["--last", "1", "--output", "nowhere/mean.keras"],
            "No such file or directory",
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
    """Returns the one line with which the command ends in exit code 2."""
    command = ["--run-dir", str(run_dir), "--output", "mean.keras"]
    return refused(capsys, average.main, [*command, *arguments])


@pytest.fixture
def run_dir(finished, tmp_path, monkeypatch):
    """A copy of the run, in the working folder."""
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
    shutil.rmtree(run_dir / "best")
    line = refusal(capsys, run_dir, "--steps", "12")
    assert "the checkpoints there, none" in line
    assert "the checkpoints there, none" in refusal(capsys, run_dir, "--last", "1")


def test_a_best_checkpoint_that_was_deleted_is_none(run_dir, capsys):
    (run_dir / "best" / "ckpt-6.index").unlink()

    line = refusal(capsys, run_dir, "--best", "2")

    assert "--best must be different ones of the checkpoints there, 15. " in line


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
    task = small_task()
    state = TrainingState(task, tmp_path, keep=3)
    for path in folder.glob("state-*.index"):
        path.write_bytes(b"")
    before = sorted(folder.iterdir())
    with pytest.raises(UserError, match="is whole.* There are 9, 12, 15"):
        state.restore()
    assert sorted(folder.iterdir()) == before
    for path in folder.glob("state-*"):
        path.unlink()
    with pytest.raises(UserError, match="is whole"):
        state.restore()


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

    paths, scores, description = choose_weights(model, prefixes, score)

    assert [step_of(path) for path in paths] == chosen
    is_mean = len(chosen) > 1
    np.testing.assert_array_equal(model.get_weights()[0], mean if is_mean else alone)
    accuracies = f"{mean_accuracy:.2%}", f"{alone_accuracy:.2%}"
    assert f"{scores['accuracy']:.2%}" == accuracies[not is_mean]
    lines = [
        f"after update{which} (validation accuracy {accuracy})"
        for which, accuracy in zip(("s 9, 12, 15", " 15"), accuracies, strict=True)
    ]
    lines = lines if is_mean else lines[::-1]
    assert description == f"the mean of the weights {lines[0]}, not {lines[1]}"


def test_the_best_is_compared_with_the_mean_around_it(finished, model):
    prefixes = [str(finished / f"checkpoints/ckpt-{n}") for n in (9, 12, 15)]
    scores = [{"accuracy": 0.1}, {"accuracy": 0.2}]

    paths, _, _ = choose_weights(model, prefixes, lambda: scores.pop(0), best=12)

    assert paths == prefixes[1:2]
    for a, b in zip(model.get_weights(), weights_in(prefixes[1]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("warmup", "patience", "best", "chosen"),
    [
        (0, None, None, [10, 20, 30]),
        (9, None, None, [10, 20, 30]),
        (10, None, None, [20, 30]),
        (29, None, None, [30]),
        (400, None, None, [30]),
        (0, 9, 20, [10, 20, 30]),
        (10, 9, 20, [20, 30]),
        (20, 9, 20, [20]),
        (400, 9, 20, [20]),
    ],
)
def test_the_mean_has_no_checkpoint_of_the_warm_up(
    tmp_path, warmup, patience, best, chosen
):
    state = rounds([2.0, 1.0, 3.0])
    for step in (10, 20, 30):
        save(tmp_path, step)
    state.checkpoints = [
        str(tmp_path / f"checkpoints/ckpt-{step}") for step in (10, 20, 30)
    ]

    paths, step = best_of(state, tmp_path, patience=patience).choose_final(warmup)

    assert [step_of(path) for path in paths] == chosen
    assert step == best


def best_of(state, run_dir, **options):
    return BestCheckpoints(state, run_dir, ValidationOptions(**options))


def rounds(values, column="val_loss"):
    """The state of a run whose rounds of ten updates had these values."""
    rows = [
        {"step": str(10 * (i + 1)), **({} if v is None else {column: v})}
        for i, v in enumerate(values)
    ]
    return types.SimpleNamespace(history=rows, validated=rows, keep=3)


def save(run_dir, step):
    """Writes the files of a checkpoint, with its step for content."""
    for suffix in ("index", "data-00000-of-00001"):
        path = run_dir / "checkpoints" / f"ckpt-{step}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(step))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_best_stay_when_they_are_no_longer_the_last(tmp_path):
    values = [30.0, None, 31.0, "nan", 30.5, 31.0, 29.0]
    state = rounds([], "bleu")
    best = best_of(state, tmp_path, best_by="bleu", keep_best=2)
    for i, row in enumerate(rounds(values, "bleu").history):
        state.history.append(row)
        save(tmp_path, row["step"])
        if i > 0:  # Only the last one stays.
            for path in (tmp_path / "checkpoints").glob(f"ckpt-{10 * i}.*"):
                path.unlink()
        best.update()

    # Of equals, the earlier; a round without a value is none of them.
    assert best_steps(tmp_path) == [30, 60]
    assert json.loads((tmp_path / "best" / "best.json").read_text()) == [
        {"step": 30, "bleu": 31.0},
        {"step": 60, "bleu": 31.0},
    ]
    assert names_in(tmp_path / "best") == [
        "best.json",
        "ckpt-30.data-00000-of-00001",
        "ckpt-30.index",
        "ckpt-60.data-00000-of-00001",
        "ckpt-60.index",
    ]
    assert (tmp_path / "best" / "ckpt-30.index").read_text() == "30"


def test_a_run_that_was_killed_between_files_mends_its_best(tmp_path):
    for step in (10, 20, 30):
        save(tmp_path, step)
    best_of(rounds([3.0, 2.0, 1.0]), tmp_path, keep_best=2)
    expected = names_in(tmp_path / "best")
    (tmp_path / "best" / "ckpt-20.index").unlink()  # Copied half.
    (tmp_path / "best" / "ckpt-10.index.part").touch()
    (tmp_path / "best" / "best.json").unlink()

    best_of(rounds([3.0, 2.0, 1.0]), tmp_path, keep_best=2)

    assert names_in(tmp_path / "best") == expected
    assert best_steps(tmp_path) == [30, 20]

    # The last round was lost: it comes again, and its copy must not stay.
    best_of(rounds([3.0, 2.0]), tmp_path, keep_best=2)
    assert best_steps(tmp_path) == [20, 10]
    assert saved_steps(tmp_path / "best").keys() == {10, 20}


def test_the_index_of_a_best_checkpoint_is_deleted_first(tmp_path, monkeypatch):
    save(tmp_path, 10)
    best_of(rounds([3.0]), tmp_path, keep_best=1)
    save(tmp_path, 20)
    deleted, glob = [], pathlib.Path.glob
    monkeypatch.setattr(pathlib.Path, "glob", lambda *args: iter(sorted(glob(*args))))
    monkeypatch.setattr(pathlib.Path, "unlink", lambda path: deleted.append(path.name))

    best_of(rounds([3.0, 2.0]), tmp_path, keep_best=1)

    assert deleted == ["ckpt-10.index", "ckpt-10.data-00000-of-00001"]


@pytest.mark.parametrize(
    ("values", "column", "by", "ends"),
    [
        ([3.0, 2.0, 2.5, 2.1], "val_loss", "loss", True),
        ([3.0, 2.0, 2.5, 1.9], "val_loss", "loss", False),
        ([3.0, 2.0, 2.0, 2.0], "val_loss", "loss", True),
        ([3.0, 4.0, 2.5, 4.0], "bleu", "bleu", True),
        ([3.0, 4.0, 2.5], "bleu", "bleu", False),
        # Scores count, not rounds: two of them, and then three.
        ([None, 4.0, None, 3.0, None], "bleu", "bleu", False),
        ([None, 4.0, None, 3.0, 3.5], "chrf", "chrf", True),
        (["", 4.0, "", "", ""], "bleu", "bleu", False),
        # One that is not finite is none that is better.
        ([2.0, "nan", "nan"], "val_loss", "loss", True),
        ([0.0, 0.0, 0.0], "bleu", "bleu", True),
        ([], "val_loss", "loss", False),
    ],
)
def test_patience_counts_scores_since_the_best(tmp_path, values, column, by, ends):
    best = best_of(rounds(values, column), tmp_path, best_by=by, patience=2)

    assert best.out_of_patience == ends
    assert not best_of(rounds(values), tmp_path).out_of_patience


# Three checkpoints stay; after the best of all come four rounds and more.
VALUES = [5.0, 4.0, 2.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0]


def test_patience_keeps_what_is_around_the_best(tmp_path):
    task = small_task()
    kept = []
    for i, loss in enumerate(VALUES):
        # Every round in a process of its own: each follows from the files.
        state = TrainingState(task, tmp_path, keep=3)
        best = best_of(state, tmp_path, patience=9)
        state.restore()
        task.optimizer.iterations.assign(10 * (i + 1))
        state.on_epoch_end(i, {"val_loss": loss})
        steps = saved_steps(tmp_path / "checkpoints")
        kept.append([step // 10 for step in steps])

    # Checkpoints around the best stay for one epoch more: the last may be lost.
    assert kept[3:5] == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert kept[5:7] == [[3, 4, 5, 6], [3, 4, 5, 6, 7]]
    assert kept[7:] == [[3, 4, 5, 6, 7, 8], [3, 4, 5, 7, 8, 9]]
    paths, step = best.choose_final()
    assert step == 40
    assert [path.rpartition("-")[2] for path in paths] == ["30", "40", "50"]


def test_a_best_whose_checkpoint_is_gone_is_told(tmp_path, capsys):
    state = rounds([1.0, 2.0, 3.0])
    state.checkpoints = ["ckpt-30"]
    save(tmp_path, 30)

    paths, step = best_of(state, tmp_path, patience=9).choose_final()

    assert (paths, step) == (["ckpt-30"], None)
    said = capsys.readouterr().out
    assert "of the best, after update 10, is not there" in said
