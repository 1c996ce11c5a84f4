"""Tests of the usual Keras workflows, on TensorFlow, JAX and torch."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import LanguageModel
from tests.helpers import keras_workflows
from tests.helpers.keras_workflows import BATCH, SMALL, SOURCE, make_model
from tests.helpers.python_subprocess import run_python

SLOW = {"check_compiles_the_search_once", "check_generates"}


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=[pytest.mark.slow] * (name in SLOW), id=name)
        for name, check in ((f.__name__, f) for f in keras_workflows.CHECKS)
    ],
)
def test_on_tensorflow(check):
    check()


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["jax", pytest.param("torch", marks=pytest.mark.peers("torch"))]
)
def test_on_other_backends(backend):
    """The workflows run where TensorFlow cannot be imported."""
    program = (
        "import runpy, sys; sys.modules['tensorflow'] = None; "
        "runpy.run_module('tests.helpers.keras_workflows', run_name='__main__')"
    )
    run_python("-c", program, backend=backend)


@pytest.mark.slow
def test_data_and_model_parallel_on_two_devices_of_jax():
    run_python(
        *("-m", "tests.helpers.programs.distributed_jax"),
        backend="jax",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )


@pytest.mark.parametrize("is_language_model", [False, True])
def test_exports_its_logits(is_language_model, tmp_path):
    model = LanguageModel(19, SMALL) if is_language_model else make_model()

    model.export(tmp_path / "exported", verbose=False)

    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    ids = {name: tf.constant(x, tf.int32) for name, x in BATCH.items()}
    for columns in (3, 6):  # Lengths and batches are free.
        part = {name: x[:columns, :columns] for name, x in ids.items()}
        part = part["target_ids"] if is_language_model else part
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
