"""The examples run, at toy size; what they reach at real size they say."""

import json
import runpy
import sys

import keras
import numpy as np
import pytest

from examples import (
    character_language_model,
    copy_task,
    text_classification,
    train_translation,
)
from keras_transformer import Transformer
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.small_runs import preset


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(SENTENCES * 4), "utf-8")
    return path


@pytest.fixture
def fitted(monkeypatch):
    """The models that an example fits; each has its `history`."""
    models = []
    fit = keras.Model.fit

    def spy(self, *args, **kwargs):
        models.append(self)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(keras.Model, "fit", spy)
    return models


@pytest.mark.slow
def test_copy_task_learns(fitted):
    copied = copy_task.main(updates=200, longest=3)

    # Ten ids, one to three of them: who does not read the source needs 1.9
    # nats a token, and guesses one copy in 27.
    assert fitted[0].history.history["loss"][0] < 1.7
    assert copied > 0.1


def test_copy_task_moves_targets_by_one():
    sources = copy_task.make_sources(50, 4, seed=0)
    inputs = copy_task.make_inputs(sources)

    # The input at a position is the label of the position before.
    targets = inputs["target_ids"]
    moved = np.where(sources == 1, 0, sources)[:, :-1]
    np.testing.assert_array_equal(targets[:, 1:], moved)


def test_character_language_model_learns(text):
    # A model that knows nothing needs 8 bits a byte.
    bits, line = character_language_model.main(
        *(text, text, "the "), width=32, num_layers=1, length=16, epochs=24
    )

    assert 0 < bits < 5.5, bits
    assert line.startswith("the ")
    assert len(line) <= 84


@pytest.mark.slow
def test_text_classification_learns(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat saw a dog\n" * 300, "utf-8")

    assert text_classification.main(path, path, epochs=15) > 0.8


def test_two_files_become_a_model_that_translates_and_resumes(tmp_path):
    files = tmp_path / "train.en", tmp_path / "train.es"
    for path, step in zip(files, (1, -1), strict=True):
        lines = [" ".join(line.split()[::step]) for line in SENTENCES * 4]
        path.write_text("\n".join(lines), "utf-8")
    tiny = preset(warmup_steps=5)
    folder = tmp_path / "run"

    def train(epochs):
        return train_translation.main(files, folder, tiny, epochs, 330, 256)

    train(1)
    model, tokenizer, history = train(2)

    # The second call resumes after the first one.
    assert [row["step"] for row in history] == [
        str(model.optimizer.iterations.numpy() // 2),
        model.optimizer.iterations.numpy(),
    ]
    assert history[1]["loss"] < float(history[0]["loss"])
    assert 0 <= history[1]["bleu"] <= 100
    loaded = Transformer.from_pretrained(folder)
    ids = tokenizer.tokenize(SENTENCES[:2]).to_tensor()
    for found in (model, loaded):
        assert tokenizer.detokenize(found.generate(ids)).shape == (2,)


def test_tf_config_names_all_workers_and_this_one(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tf_config.py", "1", "a", "b"])

    runpy.run_module("examples.tf_config")

    assert json.loads(capsys.readouterr().out) == {
        "cluster": {"worker": ["a:12345", "b:12345"]},
        "task": {"type": "worker", "index": 1},
    }
