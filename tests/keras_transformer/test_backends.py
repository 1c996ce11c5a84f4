"""The model runs where TensorFlow does not: on other backends of Keras."""

import keras
import numpy as np

from keras_transformer import RestrictedSelfAttention, Transformer
from tests.helpers.layer_checks import OF_OTHER_SYSTEMS, randomize_weights
from tests.helpers.python_subprocess import on_other_backends, run_python

MODELS = {
    "sine": {"positions": "sine"},
    "learned": {"positions": "learned"},
    "other": OF_OTHER_SYSTEMS
    | {"num_layers": 2, "decoder_layers": 1, "tied_output": False}
    | {"position_offset": 2, "source_vocabulary_size": 10},
}
INPUTS = {
    "source_ids": np.array([[5, 9, 1, 0], [4, 1, 0, 0], [8, 6, 7, 1]]),
    "target_ids": np.array([[3, 9, 5, 0, 0], [3, 4, 0, 0, 0], [3] * 5]),
}

# The program of a user without TensorFlow, whose import fails.
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

    def decode(ids, cache):
        return model.decode(ids, memory_mask=mask, cache=cache)

    compiled, length = jit(decode), target_ids.shape[1]
    cache = model.decoder.make_cache(length, memory)
    steps = []
    for index in range(length):
        logits, cache = compiled(target_ids[:, index : index + 1], cache)
        steps.append(keras.ops.convert_to_numpy(logits))
    results[name + "_steps"] = np.concatenate(steps, axis=1)
    # The length is traced: all steps are one program.
    assert not is_jax or compiled._cache_size() == 1

layer = keras.saving.load_model(folder + "/restricted.keras")
results["restricted"] = keras.ops.convert_to_numpy(jit(layer)(x))
np.savez(folder + "/outputs.npz", **results)
"""


@on_other_backends
def test_gives_the_outputs_of_tensorflow(backend, tmp_path):
    x = np.random.default_rng(1).normal(size=(2, 7, 6)).astype("float32")
    np.savez(tmp_path / "inputs.npz", **INPUTS, x=x)
    inputs = keras.Input((None, 6))
    layer = RestrictedSelfAttention(num_heads=2, key_dim=3, radius=2)
    restricted = keras.Model(inputs, layer(inputs, use_causal_mask=True))
    restricted.save(tmp_path / "restricted.keras")
    models = {name: make_model(**given) for name, given in MODELS.items()}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.keras")

    run_python("-c", SCRIPT, tmp_path, *MODELS, backend=backend)

    outputs = np.load(tmp_path / "outputs.npz")
    assert outputs["backend"] == backend
    # A cache does not know of padding, so only real positions agree.
    real = INPUTS["target_ids"] != 0
    for name, model in models.items():
        expected = np.array(model(INPUTS))
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            outputs[f"{name}_steps"][real], expected[real], rtol=1e-5, atol=1e-5
        )
    np.testing.assert_allclose(
        outputs["restricted"], restricted(x), rtol=1e-5, atol=1e-5
    )


def make_model(num_layers=1, **numbers):
    numbers |= {"num_layers": num_layers, "hidden_dim": 8, "intermediate_dim": 16}
    numbers |= {"num_heads": 2, "key_dim": 3, "value_dim": 5, "norm": "pre"}
    model = Transformer.from_preset("base", 11, sequence_length=7, **numbers)
    model.build()
    randomize_weights(model)
    return model
