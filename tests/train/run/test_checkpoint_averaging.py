"""Tests of `train.run.checkpoint_averaging`."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from tests.helpers.small_runs import preset, small_task
from train.run.checkpoint_averaging import choose_weights, load_mean, make_float32_copy
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
    return run_dir


def weights_in(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    value = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = reader.get_variable_to_shape_map()
    count = sum("/_trainable_variables/" in name for name in names)
    return [
        reader.get_tensor(f"optimizer/_trainable_variables/{i}{value}")
        for i in range(count)
    ]


def test_the_mean_is_summed_in_float64(finished, model):
    paths = [finished / f"checkpoints/ckpt-{step}" for step in (15, 9)]

    load_mean(model, paths)

    kept = [weights_in(path) for path in paths]
    for mean, *weights in zip(model.get_weights(), *kept, strict=True):
        expected = np.mean(np.asarray(weights, np.float64), axis=0)
        np.testing.assert_array_equal(mean, expected.astype(np.float32))


def test_what_cannot_be_read_is_named(finished, model, tmp_path):
    shutil.copytree(finished / "checkpoints", tmp_path / "checkpoints")
    path = tmp_path / "checkpoints" / "ckpt-15"
    data = path.with_name("ckpt-15.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(UserError, match="ckpt-15 holds no weights of this run's model"):
        load_mean(model, [path])

    other = make_float32_copy(small_task(intermediate_dim=25).transformer)
    with pytest.raises(UserError, match="ckpt-12 holds no weights of this run's model"):
        load_mean(other, [path.with_name("ckpt-12")])


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
    ("mean_accuracy", "best", "chosen"),
    [
        (0.2, None, [9, 12, 15]),
        (0.1, None, [9, 12, 15]),
        (0.05, None, [15]),
        (0.05, 12, [12]),
    ],
)
def test_the_final_model_is_the_better_of_the_mean_and_one(
    finished, model, mean_accuracy, best, chosen
):
    """That is the best one, where there is one, else the last; it has 0.1."""
    prefixes = [str(finished / f"checkpoints/ckpt-{n}") for n in (9, 12, 15)]
    mean, alone = (
        np.mean([weights_in(p)[0] for p in paths], 0, np.float64).astype(np.float32)
        for paths in (prefixes, prefixes[1:2] if best else prefixes[2:])
    )

    def score():
        is_mean = np.array_equal(model.get_weights()[0], mean)
        assert is_mean or np.array_equal(model.get_weights()[0], alone)
        return {"accuracy": mean_accuracy if is_mean else 0.1}

    paths, scores, _ = choose_weights(model, prefixes, score, best)

    assert [step_of(path) for path in paths] == chosen
    is_mean = len(chosen) > 1
    np.testing.assert_array_equal(model.get_weights()[0], mean if is_mean else alone)
    assert scores["accuracy"] == (mean_accuracy if is_mean else 0.1)
