"""Tests of `train.monitoring.attention_pictures`."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.util import event_pb2

from train.monitoring import attention_pictures
from train.monitoring.attention_pictures import AttentionPictures

SOURCE, TARGET = [9, 5, 7, 8, 1], [6, 5, 1]
KINDS = ["encoder", "decoder", "encoder_decoder"]


@pytest.fixture(scope="module")
def model(run_dir):
    return keras.saving.load_model(run_dir / "model.keras", compile=False)


@pytest.fixture
def drawn(monkeypatch):
    """Records, for each call, the weights and the pieces of both axes."""
    calls = []
    draw = attention_pictures.draw_maps

    def spy(scores, rows, columns):
        calls.append((np.array(scores), rows, columns))
        return draw(scores, rows, columns)

    monkeypatch.setattr(attention_pictures, "draw_maps", spy)
    return calls


def test_draws_each_layer_and_head_with_its_pieces(model, drawn):
    # Dollars are no formula, and what the font lacks is no failure.
    names = [f"$\\{i}$漢" for i in range(10)]

    pictures = attention_pictures.draw_attention(
        model, SOURCE, TARGET, lambda ids: [names[i] for i in ids]
    )

    source = [names[i] for i in SOURCE]
    target, given = ([names[i] for i in ids] for ids in (TARGET, [3, *TARGET[:-1]]))
    axes = [(source, source), (target, given), (target, source)]
    assert [tuple(call[1:]) for call in drawn] == axes
    for weights, rows, columns in drawn:
        assert weights.shape == (2, 1, 2, len(rows), len(columns))
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    assert not np.triu(drawn[1][0], 1).any()
    assert list(pictures) == KINDS
    for picture in pictures.values():
        assert picture.dtype == np.uint8
        assert picture.ndim == 4
        assert picture.shape[::3] == (1, 4)
        assert picture.std() > 5  # Not blank.


def test_each_round_is_shown_and_changes_no_variable(model, tmp_path):
    pictures = AttentionPictures(
        SOURCE, TARGET, lambda ids: [str(i) for i in ids], tmp_path
    )
    pictures.set_model(types.SimpleNamespace(transformer=model))
    before = [np.array(variable) for variable in model.variables]

    pictures.on_train_begin()
    for epoch in (4, 5):
        pictures.on_epoch_end(epoch, logs={})
    pictures.on_train_end()

    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    (path,) = tmp_path.iterdir()
    shown = [
        (event.step, value.tag, value.tensor.string_val[2])
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
        for event in [event_pb2.Event.FromString(record)]
        for value in event.summary.value
    ]
    tags = [f"attention/{name}" for name in KINDS]
    assert [each[:2] for each in shown] == [
        (step, tag) for step in (4, 5) for tag in tags
    ]
    # The same weights make the same pictures, and others than each other.
    images = [image for *_, image in shown]
    assert images[:3] == images[3:]
    assert len(set(images)) == 3


def test_there_is_no_tick_in_the_gap_between_maps():
    # Two maps of three subwords.
    assert attention_pictures.tick_positions(2, 4) == [0, 1, 2, 4, 5, 6]
