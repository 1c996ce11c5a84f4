"""The examples run, at toy size; what they reach at real size they say."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from examples import application
from examples import backends
from examples import character_language_model
from examples import copy_task
from examples import fine_tuning
from examples import text_classification
from examples import time_series
from keras_transformer import SubwordTokenizer
from tests.conftest import SENTENCES

EXAMPLES = pathlib.Path(copy_task.__file__).parent


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(SENTENCES * 4), "utf-8")
    return path


@pytest.mark.slow
def test_copy_task():
    sources = copy_task.make_sources(50, 4, seed=0)
    inputs = copy_task.make_inputs(sources)

    assert 0 <= copy_task.main(updates=4, longest=4) <= 1
    # What goes in at a place is what was to come out one before it.
    targets = inputs["target_ids"]
    moved = np.where(sources == 1, 0, sources)[:, :-1]
    np.testing.assert_array_equal(targets[:, 1:], moved)


def test_character_language_model_learns(text):
    # A model that knows nothing needs 8 bits a byte.
    bits = character_language_model.main(
        *(text, text), length=16, width=32, num_layers=1, epochs=12
    )

    assert 0 < bits < 6


@pytest.mark.slow
def test_text_classification(text):
    assert 0 <= text_classification.main(text, text, epochs=1) <= 1

    texts, labels = text_classification.make_examples(text, 0)
    assert sorted(texts[0].split()) == sorted(texts[1].split())
    assert texts[0] != texts[1]
    assert labels[:2].tolist() == [0, 1]


@pytest.mark.slow
def test_time_series_learns():
    error, constant = time_series.main(number=640, epochs=3)

    assert error < constant


@pytest.mark.slow
def test_application():
    assert 0 <= application.main(number=64, epochs=1) <= 1


def test_a_picture_has_two_squares_that_agree_or_not():
    pictures, labels = application.make_pictures(50, 0)
    middle = application.SIZE // 2

    for picture, label in zip(pictures, labels, strict=True):
        halves = picture[:, :middle], picture[:, middle:]
        left, right = (half.sum(axis=(0, 1)).argmax() for half in halves)
        assert (left == right) == label


@pytest.mark.slow
def test_fine_tuning(run_dir, tmp_path):
    (tmp_path / "new.en").write_text("\n".join(SENTENCES), "utf-8")
    (tmp_path / "new.es").write_text("\n".join(SENTENCES), "utf-8")

    before, after = fine_tuning.main(run_dir, tmp_path / "new", epochs=1)

    assert 0 <= before <= 100
    assert 0 <= after <= 100


def test_fine_tuning_moves_targets_by_one(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    tokenizer = SubwordTokenizer(proto)

    inputs, labels = fine_tuning.make_batch(
        tokenizer, SENTENCES, SENTENCES[::-1]
    )

    for given, label in zip(inputs["target_ids"], labels, strict=True):
        tokens = label[label != 0]
        assert given[given != 0].tolist() == [3, *tokens[:-1]]


def test_the_same_file_runs_on_this_backend():
    assert 0 <= backends.main(number=64, epochs=1) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_same_file_runs_on_other_backends(backend):
    pytest.importorskip(backend)
    code = "from examples import backends; print(backends.main(64, 1))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=EXAMPLES.parent,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert 0 <= float(done.stdout.split()[-1]) <= 1


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem
)
def test_an_example_is_short(path):
    assert len(path.read_text("utf-8").splitlines()) < 80
