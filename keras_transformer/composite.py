"""Base classes of layers and models that consist of other layers."""

import keras

from keras_transformer.linear import Linear


class CompositeMixin:
    """Creates the sub-layers of a layer or model, and saves how they are.

    A sub-layer has the dtype policy and `trainable` of its parent at that time,
    also if the parent was frozen before it was built. After `quantize`,
    `get_config` contains the policies of the quantized sub-layers, without
    which their weights could not be loaded.

    Args:
        quantized: Dict from the path of a sub-layer, such as
            `"attention/query"`, to a part of its config, from `get_config`.
    """

    def __init__(self, *args, quantized=None, **kwargs):
        super().__init__(*args, **kwargs)
        self._quantized = dict(quantized or {})

    def make_sublayer(self, layer_class, *args, name, **kwargs):
        """Creates a sub-layer; saved weights depend on its attribute's name."""
        if issubclass(layer_class, CompositeMixin):
            prefix = f"{name}/"
            kwargs["quantized"] = {
                path.removeprefix(prefix): config
                for path, config in self._quantized.items()
                if path.startswith(prefix)
            }
        layer = layer_class(
            *args,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name=name,
            **kwargs,
        )
        if name in self._quantized:
            config = {**layer.get_config(), **self._quantized[name]}
            return layer_class.from_config(config)
        return layer

    def get_config(self):
        config = super().get_config()
        quantized = {**self._quantized, **quantization_of(self)}
        return {**config, "quantized": quantized} if quantized else config


class CompositeLayer(CompositeMixin, keras.layers.Layer):
    """A layer that consists of other layers; see `CompositeMixin`.

    Its output has the shape and the mask of its first input.
    """

    supports_masking = True

    def make_linear(self, name, units, input_shape, **kwargs):
        """Creates and builds a linear map."""
        layer = self.make_sublayer(Linear, units, name=name, **kwargs)
        layer.build(input_shape)
        return layer

    def compute_output_spec(self, *args, **kwargs):
        # Traces `call`, as its outputs depend on its arguments.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, *shapes, **shapes_by_name):
        return (*shapes, *shapes_by_name.values())[0]


def quantization_of(layer, prefix=""):
    """Returns a part of the config of each quantized sub-layer by its path."""
    found = {}
    for part in layer._flatten_layers(include_self=False, recursive=False):
        path = prefix + part.name
        if isinstance(part, Linear) and part.quantization_mode is not None:
            config = part.get_config()
            names = ("dtype", "quantization_config")
            found[path] = {name: config[name] for name in names}
        found |= quantization_of(part, f"{path}/")
    return found
