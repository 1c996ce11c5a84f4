"""Tests of `train.run.training_state` with plain Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Transformer
from tests.helpers.small_runs import VOCABULARY_SIZE, preset
from train.run.run_folder import checkpoints_by_step, read_history
from train.run.training_state import TrainingState


def make_dataset():
    """Random ids, the same for source, target and labels."""
    random = np.random.default_rng(0)
    ids = random.integers(4, VOCABULARY_SIZE, (3, 2, 5), np.int32)
    names = ("source_ids", "target_ids")
    rows = tf.data.Dataset.from_tensor_slices(ids)
    return rows.map(lambda x: (dict.fromkeys(names, x), x))


def train_plainly(run_dir, epochs, data):
    """Trains a Transformer with an optimizer of Keras, three updates each."""
    keras.utils.set_random_seed(0)
    shape = {"sequence_length": 8}
    model = Transformer.from_preset(preset(), VOCABULARY_SIZE, **shape)
    model.build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.1)
    model.compile(optimizer, loss, run_eagerly=True)  # It needs no time to trace.
    state = TrainingState(model, run_dir, keep=1)
    begin = state.restore() // 3
    when = {"initial_epoch": begin, "epochs": epochs, "shuffle": False}
    model.fit(data, callbacks=[state], verbose=0, **when)
    return model.variables, model.optimizer.variables


def test_a_plain_transformer_resumes_with_any_optimizer(tmp_path):
    data = make_dataset()
    whole = train_plainly(tmp_path / "whole", 2, data)
    train_plainly(tmp_path / "two", 1, data)
    assert list(checkpoints_by_step(tmp_path / "two" / "checkpoints")) == [3]

    resumed = train_plainly(tmp_path / "two", 2, data)

    rows = read_history(tmp_path / "two")
    assert [row["step"] for row in rows] == ["3", "6"]
    assert rows == read_history(tmp_path / "whole")
    for parts in zip(whole, resumed, strict=True):
        for a, b in zip(*parts, strict=True):
            np.testing.assert_array_equal(a, b)


def test_refuses_data_of_unknown_length(tmp_path):
    """Keras counts three batches as four updates."""
    data = make_dataset().filter(lambda inputs, labels: True)

    with pytest.raises(ValueError, match="know the number of batches.*unknown"):
        train_plainly(tmp_path, 1, data)
