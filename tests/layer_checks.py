"""The promises every layer of `keras_transformer` keeps, in one call."""

import json

import keras
import numpy as np
import tensorflow as tf


def check_layer(cls, init_kwargs, inputs, output_shape, num_weights, tmp_path):
    """Builds, calls, traces, trains and saves a layer; asserts each promise.

    Args:
        cls: The layer class.
        init_kwargs: Its arguments; leave none at its default.
        inputs: Dict from argument of `call` to array, in call order.
        output_shape: Expected shape of the output.
        num_weights: Expected number of weights, sub-layers included.
        tmp_path: pytest's folder for this test.
    """
    shapes = [x.shape for x in inputs.values()]

    # The config survives JSON and makes an equal layer.
    layer = cls(**init_kwargs)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    twin = keras.saving.deserialize_keras_object(config)
    assert twin.get_config() == layer.get_config()
    assert init_kwargs.items() <= layer.get_config().items()

    # Shapes alone build it, sub-layers included, and predict its output.
    layer.build(*shapes)
    assert len(layer.weights) == num_weights
    assert tuple(layer.compute_output_shape(*shapes)) == output_shape

    # Eager and compiled calls agree.
    eager = layer(**inputs)
    assert eager.shape == output_shape
    compiled = tf.function(lambda: layer(**inputs))()
    np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)

    # Mixed precision computes in half and keeps float32 weights.
    half = cls(**{**init_kwargs, "dtype": "mixed_bfloat16"})
    assert half(**inputs).dtype == "bfloat16"
    assert all(weight.dtype == "float32" for weight in half.weights)

    # Every weight learns, in a model of unknown batch size and length...
    symbols = {
        name: keras.Input((None, *x.shape[2:]), dtype=x.dtype, name=name)
        for name, x in inputs.items()
    }
    model = keras.Model(symbols, layer(**symbols))
    before = [weight.numpy().copy() for weight in layer.trainable_weights]
    model.compile("sgd", "mse")
    target = np.random.default_rng(0).normal(size=output_shape)
    model.fit(inputs, target, verbose=0)
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert not np.array_equal(weight.numpy(), old), weight.path

    # ... which comes back from disk unchanged.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded(inputs), model(inputs), rtol=1e-5, atol=1e-6
    )
