"""What a Keras user expects of any model, on TensorFlow, JAX and torch."""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import citizen
from tests.helpers.citizen import BATCH
from tests.helpers.citizen import SOURCE
from tests.helpers.citizen import make_model

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("check", citizen.CHECKS, ids=lambda f: f.__name__)
def test_on_tensorflow(check):
    check()


def run(module, backend, **environment):
    finished = subprocess.run(
        [sys.executable, "-m", module],
        env={**os.environ, "KERAS_BACKEND": backend, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr[-3000:]


@pytest.mark.slow
def test_on_jax():
    run("tests.helpers.citizen", "jax")


@pytest.mark.slow
def test_on_torch():
    pytest.importorskip("torch", reason="a backend that is in no extra")
    run("tests.helpers.citizen", "torch")


@pytest.mark.slow
def test_data_and_model_parallel_on_two_devices_of_jax():
    run(
        "tests.helpers.distributed_jax",
        "jax",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )


def test_exports_its_logits(tmp_path):
    model = make_model()

    model.export(tmp_path / "exported", verbose=False)

    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    ids = {name: tf.constant(x, tf.int32) for name, x in BATCH.items()}
    for columns in (3, 6):  # Lengths and batches are free.
        part = {name: x[:columns, :columns] for name, x in ids.items()}
        np.testing.assert_allclose(
            loaded.serve(part), model(part), rtol=1e-5, atol=1e-5
        )


def test_generates_in_a_graph_of_unknown_shapes():
    model = make_model()
    generate = tf.function(
        lambda ids: model.generate(ids, max_extra_length=3),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )

    for rows in (1, 4):
        ids = tf.constant(SOURCE[:rows], tf.int32)
        np.testing.assert_array_equal(
            generate(ids), model.generate(ids, max_extra_length=3)
        )


def test_adam_adds_up_an_id_that_comes_twice_before_it_squares():
    """TensorFlow's gradient of rows lists an id as often as it comes."""
    ids = np.array([[5, 5, 7, 5, 1]])
    updated = []
    for as_rows in (True, False):
        model = make_model()
        optimizer = keras.optimizers.Adam(0.1)
        with tf.GradientTape() as tape:
            memory = model.encode(ids, training=True)
            loss = tf.reduce_sum(memory[:, :, 0])
        weights = model.encoder.trainable_variables + [
            model.embedding.embeddings
        ]
        gradients = tape.gradient(loss, [w.value for w in weights])
        if not as_rows:
            gradients = [tf.convert_to_tensor(g) for g in gradients]
        optimizer.apply(gradients, weights)
        updated.append(model.embedding.get_weights()[0])

    np.testing.assert_allclose(*updated, rtol=1e-6)
