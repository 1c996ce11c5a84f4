"""The model runs where TensorFlow does not: on other backends of Keras."""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_transformer import RestrictedSelfAttention
from keras_transformer import Transformer
from tests.helpers.layer_checks import randomize_weights

ROOT = pathlib.Path(__file__).parents[2]
POSITIONS = ["sine", "learned"]
INPUTS = {
    "source_ids": np.array([[5, 9, 1, 0], [4, 1, 0, 0], [8, 6, 7, 1]]),
    "target_ids": np.array([[3, 9, 5, 0, 0], [3, 4, 0, 0, 0], [3] * 5]),
}

# What a user without TensorFlow would do, for whom its import fails.
SCRIPT = """
import sys
sys.modules["tensorflow"] = None

import keras
import numpy as np
import keras_transformer

folder, *names = sys.argv[1:]
arrays = dict(np.load(folder + "/inputs.npz"))
x = arrays.pop("x")
source_ids, target_ids = arrays["source_ids"], arrays["target_ids"]
is_jax = keras.backend.backend() == "jax"
if is_jax:
    from jax import jit
else:
    def jit(function):
        return function

results = {"backend": keras.backend.backend()}
for name in names:
    model = keras.saving.load_model(f"{folder}/{name}.keras")
    results[name] = keras.ops.convert_to_numpy(jit(model)(arrays))

    memory = jit(model.encode)(source_ids)
    mask = keras_transformer.padding_mask(source_ids)
    cache = model.decoder.make_cache(memory, max_length=target_ids.shape[1])

    @jit
    def decode(ids, cache):
        return model.decode(ids, memory_mask=mask, cache=cache)

    steps = []
    for index in range(target_ids.shape[1]):
        step, cache = decode(target_ids[:, index : index + 1], cache)
        steps.append(keras.ops.convert_to_numpy(step))
    results[name + "_steps"] = np.concatenate(steps, axis=1)
    # The length is traced: all steps are one program.
    assert not is_jax or decode._cache_size() == 1

    cache = model.decoder.make_cache(memory)  # One that grows.
    steps = []
    for index in range(target_ids.shape[1]):
        step, cache = model.decode(
            target_ids[:, index : index + 1], memory_mask=mask, cache=cache
        )
        steps.append(keras.ops.convert_to_numpy(step))
    results[name + "_grown"] = np.concatenate(steps, axis=1)

layer = keras.saving.load_model(folder + "/restricted.keras")
results["restricted"] = keras.ops.convert_to_numpy(jit(layer)(x))
np.savez(folder + "/outputs.npz", **results)
"""


@pytest.mark.parametrize(
    "backend", [pytest.param("jax", marks=pytest.mark.slow), "torch"]
)
def test_gives_the_outputs_of_tensorflow(backend, tmp_path):
    if backend == "torch":
        pytest.importorskip("torch", reason="a backend that is in no extra")
    x = np.random.default_rng(1).normal(size=(2, 7, 6)).astype("float32")
    np.savez(tmp_path / "inputs.npz", **INPUTS, x=x)
    inputs = keras.Input((None, 6))
    layer = RestrictedSelfAttention(num_heads=2, key_dim=3, radius=2)
    restricted = keras.Model(inputs, layer(inputs, use_causal_mask=True))
    restricted.save(tmp_path / "restricted.keras")
    models = {positions: make_model(positions) for positions in POSITIONS}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")

    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *POSITIONS],
        env={**os.environ, "KERAS_BACKEND": backend},
        cwd=ROOT,
        check=True,
    )

    outputs = np.load(tmp_path / "outputs.npz")
    assert outputs["backend"] == backend
    # A cache does not know of padding, so only real positions agree.
    real = INPUTS["target_ids"] != 0
    for name, model in models.items():
        expected = np.array(model(INPUTS))
        np.testing.assert_allclose(
            outputs[name], expected, rtol=1e-5, atol=1e-5
        )
        for way in ("_steps", "_grown"):
            np.testing.assert_allclose(
                outputs[name + way][real],
                expected[real],
                rtol=1e-5,
                atol=1e-5,
            )
    np.testing.assert_allclose(
        outputs["restricted"], restricted(x), rtol=1e-5, atol=1e-5
    )


def make_model(positions):
    model = Transformer.from_preset(
        "base",
        vocabulary_size=11,
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        key_dim=3,
        value_dim=5,
        norm="pre",
        positions=positions,
        sequence_length=7,
    )
    model.build()
    randomize_weights(model)
    return model
