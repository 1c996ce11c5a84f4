"""Checks the Keras contract of a layer; and what the tests of several layers share."""

import json

import hypothesis
import keras
import numpy as np
import tensorflow as tf

# All that weights of other systems need otherwise.
OF_OTHER_SYSTEMS = {"use_bias": True, "activation": "swish", "scale_embedding": False}
OF_OTHER_SYSTEMS |= {"logits_bias": True, "max_wavelength": 12_000.0}
OF_OTHER_SYSTEMS |= {"norm_epsilon": 1e-5, "decoder_mixer": "ssru"}

property_test = hypothesis.settings(
    max_examples=15, deadline=None, derandomize=True, database=None
)


def check_layer(cls, init_kwargs, inputs, output_shape, num_weights, tmp_path):
    """Builds, calls, traces, trains and saves a layer; asserts each promise.

    `init_kwargs` should leave no argument at its default; `inputs` is a dict from
    arguments of `call`, in order, to arrays; sub-layers count in `num_weights`.
    """
    keras.utils.set_random_seed(2017)
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

    # Mixed precision computes nearly the same in half, with float32 weights.
    for dtype in ("bfloat16", "float16"):
        half = cls(**{**init_kwargs, "dtype": f"mixed_{dtype}"})
        half.build(*shapes)
        half.set_weights(layer.get_weights())
        outputs = half(**inputs)
        assert outputs.dtype == dtype
        outputs = np.array(keras.ops.cast(outputs, "float32"))
        # 2^-8 a rounding, of which there are some.
        np.testing.assert_allclose(outputs, eager, atol=2**-5 * np.abs(eager).max())
        assert all(weight.dtype == "float32" for weight in half.weights)

    # Every weight learns, in a model of unknown batch size and length...
    symbols = {
        name: keras.Input((None, *x.shape[2:]), dtype=x.dtype, name=name)
        for name, x in inputs.items()
    }
    model = keras.Model(symbols, layer(**symbols))
    before = [weight.numpy().copy() for weight in layer.trainable_weights]
    if before:  # Keras warns where there is nothing to train.
        model.compile("sgd", "mse", run_eagerly=True)  # Tracing takes longer.
        target = np.random.default_rng(0).normal(size=output_shape)
        model.fit(inputs, target, verbose=0)
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert not np.array_equal(weight.numpy(), old), weight.path

    # ... which can be cloned, with weights of its own, and summed up...
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(inputs), model(inputs), rtol=1e-5, atol=1e-6)
    mine = {id(weight) for weight in layer.weights}
    assert mine.isdisjoint(id(weight) for weight in clone.weights)
    lines = []
    model.summary(print_fn=lines.append)
    assert f" {model.count_params():,} " in "\n".join(lines)

    # ... and comes back from disk unchanged.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs), model(inputs), rtol=1e-5, atol=1e-6)


class TakesMask(keras.layers.Layer):
    """Returns the mask that Keras hands to the next layer."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return mask


def mask_of(tensor):
    return TakesMask()(tensor)


def randomize_weights(layer, seed=2017):
    """Replaces all weights of a built layer, biases and scales included."""
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(scale=0.5, size=w.shape) for w in layer.weights])


def residual_stream(layer, x, sub_layers):
    """Section 3.1, with sub-layers by the names under which `layer` has them."""
    for name, sub_layer in sub_layers.items():
        normalize = getattr(layer, f"{name}_residual").normalization
        if layer.norm == "post":
            x = normalize(x + sub_layer(x))
        else:
            x = x + sub_layer(normalize(x))
    return x


def check_dropout_of_sub_layers(plain, layer, inputs, names):
    """`layer` is `plain` with dropout, which falls on each of its sub-layers."""
    keras.utils.set_random_seed(2017)
    np.testing.assert_array_equal(layer(*inputs, training=False), plain(*inputs))
    for name in names:
        # Without the other sub-layers, only this one's dropout has an effect.
        layer.set_weights(plain.get_weights())
        for silent in names - {name}:
            sub_layer = getattr(layer, silent)
            sub_layer.set_weights([0 * w for w in sub_layer.get_weights()])
        difference = layer(*inputs, training=True) - layer(*inputs)
        assert np.abs(difference).max() > 0.01, name
