"""Base classes of layers and models that consist of other layers."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.argument_checks import KnownArguments


@keras.saving.register_keras_serializable(package="keras_transformer")
class Linear(keras.layers.Dense):
    """A `keras.layers.Dense` that computes one matrix product.

    Dense contracts tensors of rank 3 by a general product. In a TensorFlow
    graph with an unknown batch size this adds several small operations to each
    step of a search.

    Call arguments:
        inputs: Float tensor `(B, T, D)`, or of any other rank above 1.

    Returns:
        Float tensor `(B, T, units)` in the compute dtype.
    """

    def call(self, inputs, training=None):
        if len(inputs.shape) != 3:
            return super().call(inputs, training=training)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        rows = super().call(rows, training=training)
        return ops.reshape(rows, (*batch_and_length(inputs), self.units))


def batch_and_length(x):
    """Returns the first two sizes of `x`, with -1 for an unknown batch size."""
    if not x.shape[1]:
        # Unknown, or 0: nothing can be inferred from no elements.
        return ops.shape(x)[:2]
    return -1, x.shape[1]


class LayerOutput(NamedTuple):
    """The results of a layer; `None` for those that it did not compute."""

    outputs: Any
    scores: Any = None  # Attention weights.
    cache: Any = None

    def select(self, with_scores, with_cache):
        """Returns the result of `call`: the outputs, or a tuple."""
        result = (self.outputs,)
        if with_scores:
            result += (self.scores,)
        if with_cache:
            result += (self.cache,)
        return result if len(result) > 1 else self.outputs


class CompositeMixin(KnownArguments):
    """Creates the sub-layers of a layer or model.

    A sub-layer has the dtype policy and `trainable` of its parent at that time,
    also if the parent was frozen before it was built.
    """

    def make_sublayer(self, layer_class, *args, **kwargs):
        """Creates a sub-layer; saved weights depend on its attribute's name."""
        own = {"dtype": self.dtype_policy, "trainable": self.trainable}
        return layer_class(*args, **own, **kwargs)


class CompositeLayer(CompositeMixin, keras.layers.Layer):
    """A layer that consists of other layers; see `CompositeMixin`.

    Its output has the shape and the mask of its first input.
    """

    supports_masking = True

    def run(self, *inputs, return_attention_scores=False, cache=None, **kwargs):
        """Calls the layer; returns a `LayerOutput`, whatever is asked for."""
        if return_attention_scores:
            kwargs["return_attention_scores"] = True
        if cache is None and not return_attention_scores:
            return LayerOutput(self(*inputs, **kwargs))
        if cache is None:
            return LayerOutput(*self(*inputs, **kwargs))
        outputs, *scores, cache = self(*inputs, cache=cache, **kwargs)
        return LayerOutput(outputs, *(scores or [None]), cache)

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
