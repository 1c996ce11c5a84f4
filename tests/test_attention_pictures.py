"""Tests of `train.attention_pictures`."""

import keras
import numpy as np
import pytest

from train import attention_pictures
from train.fit import make_strategy

SOURCE, TARGET = [9, 5, 7, 8, 1], [6, 5, 1]


@pytest.fixture(scope="module")
def model(run_dir):
    return keras.saving.load_model(run_dir / "model.keras", compile=False)


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn: by call, the weights and the pieces of both axes."""
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
    target, given = (
        [names[i] for i in ids] for ids in (TARGET, [3, *TARGET[:-1]])
    )
    axes = [(source, source), (target, given), (target, source)]
    assert [tuple(call[1:]) for call in drawn] == axes
    for weights, rows, columns in drawn:
        assert weights.shape == (2, 1, 2, len(rows), len(columns))
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    assert not np.triu(drawn[1][0], 1).any()
    assert list(pictures) == ["encoder", "decoder", "encoder_decoder"]
    for picture in pictures.values():
        assert picture.dtype == np.uint8
        assert picture.ndim == 4
        assert picture.shape[::3] == (1, 4)
        assert picture.std() > 5  # Not blank.


def test_replicas_are_drawn_as_one_model(model, drawn):
    def draw(transformer):
        attention_pictures.draw_attention(
            transformer, SOURCE, TARGET, lambda ids: ["a"] * len(ids)
        )

    draw(model)
    with make_strategy(["CPU:0", "CPU:1"]).scope():
        mirrored = type(model).from_config(model.get_config())
        mirrored.build()
        mirrored.set_weights(model.get_weights())
        draw(mirrored)

    for alone, both in zip(drawn[:3], drawn[3:], strict=True):
        np.testing.assert_allclose(both[0], alone[0], rtol=1e-5)


def test_a_darker_cell_is_a_larger_weight():
    weights = np.eye(2, dtype="float32")[None, None]

    (picture,) = attention_pictures.draw_maps([weights[0][None]], "ab", "cd")

    blue = (picture[..., 2] > picture[..., 0] + 80) & (picture[..., 0] < 60)
    rows, columns = np.nonzero(blue)
    middle = (np.mean(rows), np.mean(columns))
    upper = rows < middle[0]
    assert np.mean(columns[upper]) < middle[1] < np.mean(columns[~upper])


def test_what_the_model_cannot_read_is_left_out(model, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        attention_pictures, "draw_maps", lambda *call: drawn.append(call)
    )

    attention_pictures.draw_attention(
        model, [5] * 50 + [1], [6] * 60 + [1], lambda ids: ["a"] * len(ids)
    )

    lengths = [(len(rows), len(columns)) for _, rows, columns in drawn]
    assert lengths == [(40, 40)] * 3
